// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

type scalarKind int

const (
	scalarString scalarKind = iota
	scalarNull
	scalarBool
	scalarInt
	scalarFloat
	// notScalar is an object or a list.
	notScalar
)

// scalar is the value of a YAML scalar as kubectl hands it to JSON.
type scalar struct {
	kind scalarKind
	// text is the string, the decimal digits of an integer, or the text of a float, which strconv
	// parses unless it is .nan, .inf or -.inf. If kind is notScalar, text describes the node.
	text string
	bool bool
}

// describe names the value in an error message.
func (s scalar) describe() string {
	switch s.kind {
	case scalarNull:
		return "null"
	case scalarBool:
		return "the boolean " + strconv.FormatBool(s.bool)
	case scalarInt, scalarFloat:
		return "the number " + shorten(s.text)
	case notScalar:
		return s.text
	default:
		return strconv.Quote(shorten(s.text))
	}
}

// shorten bounds the length of a quotation from the input in an error message.
func shorten(s string) string {
	const limit = 64
	if len(s) <= limit {
		return s
	}
	cut := limit
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "…"
}

// resolve returns the value of a node. The error says why a scalar does not have the type of its tag.
func resolve(n *yaml.Node) (scalar, error) {
	switch n = follow(n); {
	case n.Kind == yaml.MappingNode:
		return scalar{kind: notScalar, text: "an object"}, nil
	case n.Kind == yaml.SequenceNode:
		return scalar{kind: notScalar, text: "a list"}, nil
	case n.Style&yaml.TaggedStyle != 0:
		return resolveTagged(n.Tag, n.Value)
	case n.Style != 0: // quoted
		return scalar{text: n.Value}, nil
	default:
		return resolvePlain(n.Tag, n.Value), nil
	}
}

// isNull reports whether the value of a node is null.
func isNull(n *yaml.Node) bool {
	s, err := resolve(n)
	return err == nil && s.kind == scalarNull
}

// resolveTagged returns the value of a scalar with an explicit tag. Like
// kubectl's YAML reader it takes values with tags it does not know as strings.
func resolveTagged(tag, value string) (scalar, error) {
	var want scalarKind
	switch tag {
	case "!!null":
		want = scalarNull
	case "!!bool":
		want = scalarBool
	case "!!int":
		want = scalarInt
	case "!!float":
		want = scalarFloat
	case "!!binary":
		data, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(value), ""))
		if err != nil || !utf8.Valid(data) {
			return scalar{}, errors.New("must be base64 of UTF-8 text to be tagged !!binary")
		}
		return scalar{text: string(data)}, nil
	default:
		return scalar{text: value}, nil
	}
	untagged := yaml.Node{Kind: yaml.ScalarNode, Value: value}
	got := resolvePlain(untagged.ShortTag(), value)
	if got.kind != want && (want != scalarFloat || got.kind != scalarInt) {
		return scalar{}, errors.New("is tagged " + tag + " but is " + got.describe())
	}
	return got, nil
}

// resolvePlain returns the value of a plain scalar, given the tag that the YAML parser gives it. As
// for the sigs.k8s.io/yaml reader behind kubectl, the words of YAML 1.1 are booleans, too, and
// timestamps are strings.
func resolvePlain(tag, value string) scalar {
	switch tag {
	case "!!null":
		return scalar{kind: scalarNull}
	case "!!int":
		return resolveInt(value)
	case "!!float":
		// In lower case, which leaves one spelling each of infinity and of what is not a number.
		text := strings.ToLower(strings.TrimPrefix(value, "+"))
		return scalar{kind: scalarFloat, text: strings.ReplaceAll(text, "_", "")}
	}
	switch value {
	case "y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON":
		return scalar{kind: scalarBool, bool: true}
	case "n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF":
		return scalar{kind: scalarBool}
	}
	return scalar{text: value}
}

// resolveInt returns the value of an integer of any base.
func resolveInt(value string) scalar {
	text := strings.ReplaceAll(value, "_", "")
	if json.Valid([]byte(text)) {
		return scalar{kind: scalarInt, text: text} // as it is: -0 is a number of its own
	}
	i, ok := new(big.Int).SetString(text, 0)
	if !ok {
		return scalar{text: value} // such as 0b-1, an integer to the YAML parser only
	}
	return scalar{kind: scalarInt, text: i.String()}
}
