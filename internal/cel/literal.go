// SPDX-License-Identifier: Apache-2.0

package cel

import (
	"strconv"
	"strings"
)

// numberLength returns the length of the number at the start of s, or 0 if it is out of the range
// of its type. The sign is not part of it, so 2⁶³, which is valid only with a minus sign, is
// accepted.
func numberLength(s string) int {
	if len(s) > 2 && s[0] == '0' && s[1]|0x20 == 'x' && isHex(s[2]) {
		return integerLength(s, 2, 2+span(s[2:], isHex), 16)
	}
	whole := span(s, isDigit)
	n := whole
	if len(s) > n+1 && s[n] == '.' && isDigit(s[n+1]) {
		n += 1 + span(s[n+1:], isDigit)
	}
	if len(s) > n && s[n]|0x20 == 'e' {
		exponent := strings.TrimLeft(s[n+1:min(n+2, len(s))], "+-")
		sign := min(n+2, len(s)) - n - 1 - len(exponent)
		if digits := span(s[n+1+sign:], isDigit); digits > 0 {
			n += 1 + sign + digits
		}
	}
	if n == whole {
		return integerLength(s, 0, n, 10)
	}
	if _, err := strconv.ParseFloat(s[:n], 64); err != nil {
		return 0
	}
	return n
}

// integerLength returns the length of an integer with the given digits and its
// suffix "u", or 0.
func integerLength(s string, start, end, base int) int {
	value, err := strconv.ParseUint(s[start:end], base, 64)
	switch unsigned := end < len(s) && s[end]|0x20 == 'u'; {
	case err != nil, !unsigned && value > 1<<63:
		return 0
	case unsigned:
		return end + 1
	default:
		return end
	}
}

func span(s string, in func(byte) bool) int {
	n := 0
	for n < len(s) && in(s[n]) {
		n++
	}
	return n
}

// textStart returns how many bytes of s, prefixes and a quote, begin a text, or 0.
func textStart(s string) int {
	n := strings.IndexAny(s[:min(len(s), 3)], `'"`)
	if n < 0 {
		return 0
	}
	switch strings.ToLower(s[:n]) {
	case "", "r", "b", "br":
		return n + 1
	default:
		return 0
	}
}

// textLength returns the length of the text, of characters or of bytes, that s
// begins with, or 0 if it does not end or has an escape that is none.
func textLength(s string) int {
	n := textStart(s)
	prefix, quote := strings.ToLower(s[:n-1]), s[n-1:n]
	triple := strings.HasPrefix(s[n-1:], quote+quote+quote)
	if triple {
		n, quote = n+2, quote+quote+quote
	}
	for n < len(s) {
		length := 1
		switch {
		case strings.HasPrefix(s[n:], quote):
			return n + len(quote)
		case s[n] == '\\' && !strings.Contains(prefix, "r"):
			length = escapeLength(s[n:], strings.Contains(prefix, "b"))
		case !triple && (s[n] == '\n' || s[n] == '\r'):
			length = 0
		}
		if length == 0 {
			return 0
		}
		n += length
	}
	return 0
}

// escapeLength returns the length of the escape at the start of s, or 0. The escapes are those of
// Go and a few more; bytes have no code points.
func escapeLength(s string, bytes bool) int {
	if len(s) < 2 {
		return 0
	}
	switch c := s[1]; {
	case strings.IndexByte("?\"'`", c) >= 0:
		return 2
	case bytes && c|0x20 == 'u':
		return 0
	case c == 'X':
		s = `\x` + s[2:]
	}
	_, _, rest, err := strconv.UnquoteChar(s, 0)
	if err != nil {
		return 0
	}
	return len(s) - len(rest)
}
