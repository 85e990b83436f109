// SPDX-License-Identifier: Apache-2.0

package re2

import (
	"regexp/syntax"
	"slices"
	"unicode"
	"unicode/utf8"
)

// maxSize caps computed sizes.
const maxSize = 1 << 17

// programSize returns an upper bound for the number of instructions of a regular expression's
// program. ranges returns that of a class, whose ranges are pairs of bounds.
func programSize(tree *syntax.Regexp, ranges func([]rune) int) int {
	// Every program begins and ends with four instructions in total.
	return min(maxSize, 4+sizer{ranges}.size(tree))
}

type sizer struct{ ranges func([]rune) int }

func (s sizer) size(tree *syntax.Regexp) int {
	switch tree.Op {
	case syntax.OpLiteral:
		return s.literal(tree)
	case syntax.OpCharClass:
		return s.ranges(tree.Rune)
	case syntax.OpAnyCharNotNL:
		return s.ranges([]rune{0, '\n' - 1, '\n' + 1, unicode.MaxRune})
	case syntax.OpAnyChar:
		return s.ranges([]rune{0, unicode.MaxRune})
	case syntax.OpCapture:
		return 2 + s.sum(tree.Sub)
	case syntax.OpStar, syntax.OpPlus:
		return s.size(tree.Sub[0]) + loop(tree.Sub[0])
	case syntax.OpQuest, syntax.OpAlternate:
		return len(tree.Sub) + s.sum(tree.Sub)
	case syntax.OpConcat:
		return s.sum(tree.Sub)
	case syntax.OpRepeat:
		return s.repeat(tree)
	default: // expressions that match no characters
		return 1
	}
}

func (s sizer) sum(trees []*syntax.Regexp) int {
	sum := 0
	for _, t := range trees {
		if sum += s.size(t); sum >= maxSize {
			return maxSize
		}
	}
	return sum
}

// repeat returns the size of a repetition. Each optional repetition has an instruction that skips
// it.
func (s sizer) repeat(tree *syntax.Regexp) int {
	once := s.size(tree.Sub[0])
	if tree.Max < 0 {
		return min(maxSize, max(1, tree.Min)*once+loop(tree.Sub[0]))
	}
	return min(maxSize, tree.Max*once+tree.Max-tree.Min)
}

// loop returns the number of instructions of a loop, which is higher if the expression may match no
// characters.
func loop(tree *syntax.Regexp) int {
	if matchesEmpty(tree) {
		return 4
	}
	return 2
}

func matchesEmpty(tree *syntax.Regexp) bool {
	switch tree.Op {
	case syntax.OpLiteral, syntax.OpCharClass, syntax.OpAnyChar, syntax.OpAnyCharNotNL, syntax.OpNoMatch:
		return false
	case syntax.OpAlternate:
		return slices.ContainsFunc(tree.Sub, matchesEmpty)
	case syntax.OpConcat:
		return !slices.ContainsFunc(tree.Sub, func(t *syntax.Regexp) bool { return !matchesEmpty(t) })
	case syntax.OpCapture, syntax.OpPlus:
		return matchesEmpty(tree.Sub[0])
	case syntax.OpRepeat:
		return tree.Min == 0 || matchesEmpty(tree.Sub[0])
	default:
		return true
	}
}

func (s sizer) literal(tree *syntax.Regexp) int {
	size := 0
	for _, r := range tree.Rune {
		if tree.Flags&syntax.FoldCase == 0 {
			size += utf8.RuneLen(r)
			continue
		}
		for c := unicode.SimpleFold(r); ; c = unicode.SimpleFold(c) {
			size += utf8.RuneLen(c)
			if c == r {
				break
			}
		}
	}
	return size
}
