// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
)

// maxSimpleKey is a safe distance below the 1024 characters up to which YAML
// finds the ":" of a key.
const maxSimpleKey = 256

// appendYAML appends the YAML form of a tree in block style. Trees are made of
// the types of encoding/json, numbers as json.Number. Only what every reader
// of YAML 1.1 and 1.2 takes for a string is written without quotes. The encoder of
// package yaml is no replacement: text that begins with a tab, for example, becomes
// a literal block that cannot be read again.
func appendYAML(out []byte, tree map[string]any) []byte {
	return appendMapping(out, tree, 0)
}

// appendMapping appends the lines of a mapping; the first is not indented.
func appendMapping(out []byte, m map[string]any, indent int) []byte {
	for i, key := range slices.Sorted(maps.Keys(m)) {
		if i > 0 {
			out = appendIndent(out, indent)
		}
		sequenceIndent := indent
		if len(key) <= maxSimpleKey {
			out = appendString(out, key)
		} else {
			out = append(out, "? "...)
			out = append(appendString(out, key), '\n')
			out = appendIndent(out, indent)
			sequenceIndent += 2
		}
		out = append(out, ':')
		switch v := m[key].(type) {
		case map[string]any:
			if len(v) > 0 {
				out = appendIndent(append(out, '\n'), indent+2)
				out = appendMapping(out, v, indent+2)
				continue
			}
		case []any:
			if len(v) > 0 {
				out = appendIndent(append(out, '\n'), sequenceIndent)
				out = appendSequence(out, v, sequenceIndent)
				continue
			}
		}
		out = append(appendLeaf(append(out, ' '), m[key], indent+2), '\n')
	}
	return out
}

// appendSequence appends the lines of a sequence; the first is not indented.
func appendSequence(out []byte, s []any, indent int) []byte {
	for i, item := range s {
		if i > 0 {
			out = appendIndent(out, indent)
		}
		out = append(out, "- "...)
		switch v := item.(type) {
		case map[string]any:
			if len(v) > 0 {
				out = appendMapping(out, v, indent+2)
				continue
			}
		case []any:
			if len(v) > 0 {
				out = appendSequence(out, v, indent+2)
				continue
			}
		}
		out = append(appendLeaf(out, item, indent+2), '\n')
	}
	return out
}

// appendLeaf appends a scalar or an empty collection without its line break.
func appendLeaf(out []byte, v any, indent int) []byte {
	switch v := v.(type) {
	case nil:
		return append(out, "null"...)
	case bool:
		return strconv.AppendBool(out, v)
	case json.Number:
		return append(out, v...)
	case string:
		if isBlock(v) {
			return appendBlock(out, v, indent)
		}
		return appendString(out, v)
	case map[string]any:
		return append(out, "{}"...)
	case []any:
		return append(out, "[]"...)
	default:
		panic(fmt.Sprintf("manifest: tree holds a %T", v))
	}
}

func appendIndent(out []byte, indent int) []byte {
	for range indent {
		out = append(out, ' ')
	}
	return out
}

// appendString appends a string on one line.
func appendString(out []byte, s string) []byte {
	if isPlain(s) {
		return append(out, s...)
	}
	out = append(out, '"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			out = append(out, '\\', byte(r))
		case r == '\n':
			out = append(out, `\n`...)
		case r == '\t':
			out = append(out, `\t`...)
		case isPrintable(r):
			out = append(out, string(r)...)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
	}
	return append(out, '"')
}

// isPrintable reports whether YAML lets a character stand for itself and no
// reader takes it for a line break.
func isPrintable(r rune) bool {
	switch {
	case r < ' ', r >= 0x7f && r < 0xa0, r == 0x2028, r == 0x2029, r == 0xfeff, r == 0xfffe, r == 0xffff:
		return false
	default:
		return true
	}
}

// isPlain reports whether a string needs no quotes.
func isPlain(s string) bool {
	if s == "" || resolvePlain(s).kind != scalarString {
		return false
	}
	if c := s[0]; c >= '0' && c <= '9' {
		// Old readers take 12:30 and 2024-01-31 for numbers and times.
		return isAddress(s) || isDuration(s)
	} else if !isAlpha(c) && c != '_' && c != '/' {
		return false
	}
	for i := range len(s) {
		c := s[i]
		switch {
		case isAlpha(c), c >= '0' && c <= '9':
		case c == ':' || c == ' ':
			if i+1 == len(s) || s[i+1] == ' ' {
				return false
			}
		case strings.IndexByte("._/@|=+-*%()~^$<>!;?", c) < 0:
			return false
		}
	}
	return true
}

func isAlpha(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

// isAddress reports whether a string is an IPv4 address or prefix.
func isAddress(s string) bool {
	if prefix, err := netip.ParsePrefix(s); err == nil {
		return prefix.Addr().Is4()
	}
	addr, err := netip.ParseAddr(s)
	return err == nil && addr.Is4()
}

func isDuration(s string) bool {
	_, err := time.ParseDuration(s)
	return err == nil && !strings.ContainsRune(s, 'µ') && !strings.ContainsRune(s, 'μ')
}

// isBlock reports whether a string is text of several lines that reads best as
// a literal block and survives as one.
func isBlock(s string) bool {
	if !strings.Contains(s, "\n") || strings.HasSuffix(s, "\n\n") {
		return false
	}
	if c := s[0]; c == '\n' || c == ' ' || c == '\t' {
		return false
	}
	for line := range strings.Lines(s) {
		line = strings.TrimSuffix(line, "\n")
		if strings.HasSuffix(line, " ") || strings.HasSuffix(line, "\t") {
			return false
		}
		for _, r := range line {
			if !isPrintable(r) && r != '\t' {
				return false
			}
		}
	}
	return true
}

func appendBlock(out []byte, s string, indent int) []byte {
	out = append(out, '|')
	if !strings.HasSuffix(s, "\n") {
		out = append(out, '-')
	}
	for line := range strings.Lines(s) {
		out = append(out, '\n')
		if line = strings.TrimSuffix(line, "\n"); line != "" {
			out = append(appendIndent(out, indent), line...)
		}
	}
	return out
}
