// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

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
		return stringNode(v, isBlock(v))
	case map[string]any:
		n := &yaml.Node{Kind: yaml.MappingNode}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			n.Content = append(n.Content, stringNode(key, false), nodeOf(v[key]))
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

// stringNode returns the node of a string. Only what every reader of YAML 1.1 and
// 1.2 takes for a string has no quotes, and only what survives it is a block: left
// to choose, package yaml makes a block of text that begins with a tab, for example,
// and cannot read it again.
func stringNode(s string, block bool) *yaml.Node {
	n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s, Style: yaml.DoubleQuotedStyle}
	switch {
	case isPlain(s):
		n.Style = 0
	case block:
		n.Style = yaml.LiteralStyle
	}
	return n
}

// isPlain reports whether package yaml may write a string without quotes.
func isPlain(s string) bool {
	const (
		digits = "0123456789"
		first  = digits + "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_/"
		others = first + ".@|=+-*%()~^$<>!;?: "
	)
	switch {
	case s == "", !strings.Contains(first, s[:1]), strings.Trim(s, others) != "":
		return false
	case strings.HasSuffix(s, ":"), strings.HasSuffix(s, " "), strings.Contains(s, ": "), strings.Contains(s, "  "):
		return false
	case strings.Contains(digits, s[:1]) && strings.ContainsAny(s, ":-_"):
		return false // Old readers take 12:30 and 2024-01-31 for numbers and times.
	}
	// Package yaml quotes null and numbers itself, but not the booleans of YAML 1.1.
	return resolvePlain("", s).kind == scalarString
}

// isBlock reports whether a string is text of several lines that reads best as
// a literal block and survives as one.
func isBlock(s string) bool {
	if !strings.Contains(s, "\n") || strings.HasSuffix(s, "\n\n") || strings.ContainsAny(s[:1], "\n \t") {
		return false
	}
	lines := s + "\n"
	return !strings.Contains(lines, " \n") && !strings.Contains(lines, "\t\n") && !strings.ContainsFunc(s, isSpecial)
}

// isSpecial reports whether YAML does not let a character stand for itself in a
// block, or whether a reader may take it for a line break.
func isSpecial(r rune) bool {
	control := r < ' ' && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0
	return control || strings.ContainsRune("\u2028\u2029\ufeff\ufffe\uffff", r)
}
