// SPDX-License-Identifier: Apache-2.0

package re2

import (
	"fmt"
	"regexp/syntax"
	"strconv"
	"strings"
	"unicode/utf8"
)

// MaxProgram is the maximum accepted program size. Istio's proxies have this limit
// ("re2.max_program_size.error_level"); Envoy's default is 100.
const MaxProgram = 32768

// Check returns nil if Envoy, with Istio's limit, compiles a regular expression.
func Check(expression string) error { return CheckSize(expression, MaxProgram) }

// CheckSize returns nil if RE2 compiles a regular expression to a program of at most limit
// instructions.
func CheckSize(expression string, limit int) error {
	size, err := Size(expression)
	if err == nil && size > limit {
		return tooLarge(size, limit)
	}
	return err
}

// CheckedSize returns the result of Size, or 0 and the error of Check.
func CheckedSize(expression string) (int, error) {
	size, err := Size(expression)
	switch {
	case err != nil:
		return 0, err
	case size > MaxProgram:
		return 0, tooLarge(size, MaxProgram)
	default:
		return size, nil
	}
}

// Size returns an upper bound for the number of instructions of a regular expression's program. It
// returns an error if RE2 does not compile the expression, regardless of the program size.
func Size(expression string) (int, error) {
	tree, err := parse(expression)
	if err != nil {
		return 0, err
	}
	size := programSize(tree, expandUTF8)
	if !isASCII(expression) {
		// In Latin-1 each byte is a character.
		if tree, err = syntax.Parse(latin1(expression), syntax.Perl); err != nil {
			return 0, fmt.Errorf("as Latin-1, which Envoy 1.40 reads: %w", err)
		}
	}
	return max(size, programSize(tree, expandLatin1)), nil
}

func tooLarge(size, limit int) error {
	return fmt.Errorf("RE2 program size of %d > max program size of %d (estimated)", size, limit)
}

func parse(expression string) (*syntax.Regexp, error) {
	tree, err := syntax.Parse(expression, syntax.Perl)
	if err != nil {
		return nil, err
	}
	if err := checkEscapes(expression); err != nil {
		return nil, err
	}
	if repetitions(tree) > maxRepetitions {
		return nil, fmt.Errorf("invalid repetition size: more than %d repetitions of a part", maxRepetitions)
	}
	return tree, nil
}

// maxRepetitions is the maximum product of the repetitions around a part.
const maxRepetitions = 1000

// repetitions returns the maximum number of repetitions of a part of an expression. Unlike Go, it
// also counts repetitions within a part that is repeated zero times.
func repetitions(tree *syntax.Regexp) int {
	most := 1
	for _, sub := range tree.Sub {
		most = max(most, repetitions(sub))
	}
	if tree.Op == syntax.OpRepeat {
		return most * max(1, tree.Min, tree.Max)
	}
	return most
}

func isASCII(text string) bool {
	return strings.IndexFunc(text, func(r rune) bool { return r >= utf8.RuneSelf }) < 0
}

// latin1 returns the bytes of a text as characters.
func latin1(text string) string {
	out := make([]rune, len(text))
	for i := range len(text) {
		out[i] = rune(text[i])
	}
	return string(out)
}

// checkEscapes finds the parts of a Go expression that RE2 rejects: class names that only Go has,
// and characters beyond Latin-1.
func checkEscapes(expression string) error {
	for rest := expression; ; {
		_, after, found := strings.Cut(rest, `\`)
		if !found {
			return nil
		}
		var err error
		switch c := after[0]; {
		case c == 'Q':
			_, after, _ = strings.Cut(after, `\E`)
		case c == 'p' || c == 'P':
			after, err = checkClass(after)
		case c == 'x' && after[1] == '{':
			var digits string
			digits, after, _ = strings.Cut(after[2:], "}")
			err = checkCharacter("x{"+digits+"}", digits, 16)
		case '0' <= c && c <= '7':
			n := 1
			for n < min(3, len(after)) && '0' <= after[n] && after[n] <= '7' {
				n++
			}
			err = checkCharacter(after[:n], after[:n], 8)
			after = after[n:]
		default:
			after = after[1:]
		}
		if err != nil {
			return err
		}
		rest = after
	}
}

// checkClass checks the name of a class and returns the remaining text.
func checkClass(text string) (rest string, err error) {
	name := text[1:2]
	rest = text[2:]
	if name == "{" {
		name, rest, _ = strings.Cut(rest, "}")
	}
	if !isClass(strings.TrimPrefix(name, "^")) {
		return rest, fmt.Errorf("invalid character class range: `\\%s`", text[:len(text)-len(rest)])
	}
	return rest, nil
}

func checkCharacter(escape, digits string, base int) error {
	if n, err := strconv.ParseUint(digits, base, 32); err != nil || n > 0xff {
		return fmt.Errorf("invalid escape sequence: `\\%s`: Envoy reads expressions as Latin-1", escape)
	}
	return nil
}
