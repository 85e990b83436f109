// SPDX-License-Identifier: Apache-2.0

package re2

import (
	"bytes"
	"unicode"
	"unicode/utf8"
)

// expandLatin1 returns the number of ranges of a class with Latin-1 characters.
func expandLatin1(class []rune) int {
	n := 0
	for i := 0; i < len(class); i += 2 {
		if class[i] <= unicode.MaxLatin1 {
			n++
		}
	}
	return max(1, n)
}

// expandUTF8 returns an upper bound for the number of byte ranges that RE2 uses to encode the
// characters of a class.
func expandUTF8(class []rune) int {
	var b byteRanges
	for i := 0; i < len(class); i += 2 {
		low, high := class[i], class[i+1]
		if low <= utf8.RuneSelf && high == unicode.MaxRune {
			// RE2 uses six ranges for all non-ASCII characters.
			b.count += 6
			high = utf8.RuneSelf - 1
		}
		if low <= high {
			b.add(low, high)
		}
	}
	// RE2 jumps to the ranges that it shares.
	return max(1, b.count+b.count/8)
}

// byteRanges counts byte ranges with the same prefix once, because RE2 merges them. RE2 also shares
// some of the others.
type byteRanges struct {
	count int
	// last contains the bounds of the previous sequence; ranges are added in order.
	last []byte
}

// add splits a range of characters into ranges whose encodings are sequences of byte ranges.
func (b *byteRanges) add(low, high rune) {
	for _, end := range []rune{utf8.RuneSelf - 1, 1<<11 - 1, 1<<16 - 1} {
		if low <= end && high > end {
			b.add(low, end)
			low = end + 1
		}
	}
	for bits := 6; bits <= 18 && low >= utf8.RuneSelf; bits += 6 {
		// If more than the last bytes differ, the last bytes must span all values.
		block := rune(1)<<bits - 1
		switch {
		case low&^block == high&^block:
			b.insert(low, high)
			return
		case low&block != 0:
			b.add(low, low|block)
			b.add(low|block+1, high)
			return
		case high&block != block:
			b.add(low, high&^block-1)
			b.add(high&^block, high)
			return
		}
	}
	b.insert(low, high)
}

// insert adds one sequence.
func (b *byteRanges) insert(low, high rune) {
	from, to := encode(low), encode(high)
	bounds := make([]byte, 0, 2*len(from))
	for i := range from {
		bounds = append(bounds, from[i], to[i])
		if !bytes.HasPrefix(b.last, bounds) {
			b.count++
		}
	}
	b.last = bounds
}

// encode is utf8.AppendRune including surrogates, which classes may contain but texts may not.
func encode(r rune) []byte {
	if r < 0xd800 || r > 0xdfff {
		return utf8.AppendRune(nil, r)
	}
	return []byte{0xe0 | byte(r>>12), 0x80 | byte(r>>6)&0x3f, 0x80 | byte(r)&0x3f}
}
