// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// encodeYAML returns the YAML form of a tree in block style, the keys sorted. Trees
// are made of the types of encoding/json, numbers as json.Number.
func encodeYAML(tree map[string]any) ([]byte, error) {
	var out bytes.Buffer
	enc := yaml.NewEncoder(&out)
	enc.SetIndent(2)
	enc.CompactSeqIndent()
	if err := enc.Encode(nodeOf(tree)); err != nil {
		return nil, err
	}
	return out.Bytes(), enc.Close()
}

func nodeOf(v any) *yaml.Node {
	switch v := v.(type) {
	case nil:
		return &yaml.Node{Kind: yaml.ScalarNode, Value: "null"}
	case bool:
		return &yaml.Node{Kind: yaml.ScalarNode, Value: strconv.FormatBool(v)}
	case json.Number:
		return &yaml.Node{Kind: yaml.ScalarNode, Value: v.String()}
	case string:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: v, Style: styleOf(v)}
	case map[string]any:
		n := &yaml.Node{Kind: yaml.MappingNode}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			n.Content = append(n.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: key, Style: styleOfKey(key)}, nodeOf(v[key]))
		}
		return n
	case []any:
		n := &yaml.Node{Kind: yaml.SequenceNode}
		for _, item := range v {
			n.Content = append(n.Content, nodeOf(item))
		}
		return n
	default:
		panic(fmt.Sprintf("manifest: tree holds a %T", v))
	}
}

// styleOf returns how a string is written. Only what every reader of YAML 1.1 and
// 1.2 takes for a string has no quotes, and only what survives it is a block: left
// to choose, package yaml makes a block of text that begins with a tab, for example,
// and cannot read it again.
func styleOf(s string) yaml.Style {
	switch {
	case isPlain(s):
		return 0
	case isBlock(s):
		return yaml.LiteralStyle
	default:
		return yaml.DoubleQuotedStyle
	}
}

// styleOfKey is styleOf for a key, which is written on one line.
func styleOfKey(s string) yaml.Style {
	if isPlain(s) {
		return 0
	}
	return yaml.DoubleQuotedStyle
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
