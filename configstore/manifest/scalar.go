// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"encoding/base64"
	"errors"
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
)

// scalar is the value of a YAML scalar as kubectl hands it to JSON.
type scalar struct {
	kind scalarKind
	// text is the string, the decimal digits of an integer, or the text of a
	// float as strconv reads it.
	text string
	bool bool
}

// describe names the scalar in an error message.
func (s scalar) describe() string {
	switch s.kind {
	case scalarNull:
		return "null"
	case scalarBool:
		return "the boolean " + strconv.FormatBool(s.bool)
	case scalarInt, scalarFloat:
		return "the number " + shorten(s.text)
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

// resolveNode returns the value of a scalar node.
func resolveNode(n *yaml.Node) (scalar, error) {
	const quoted = yaml.DoubleQuotedStyle | yaml.SingleQuotedStyle | yaml.LiteralStyle | yaml.FoldedStyle
	if n.Style&yaml.TaggedStyle != 0 {
		return resolveTagged(n.Tag, n.Value)
	}
	if n.Style&quoted != 0 {
		return scalar{text: n.Value}, nil
	}
	return resolvePlain(n.Value), nil
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
	got := resolvePlain(value)
	if got.kind != want && (want != scalarFloat || got.kind != scalarInt) {
		return scalar{}, errors.New("is tagged " + tag + " but is " + got.describe())
	}
	return got, nil
}

// resolvePlain returns the value of a plain scalar by the rules of YAML 1.1 as
// the sigs.k8s.io/yaml reader behind kubectl applies them: words of booleans
// and nulls, integers of any base, floats; everything else, timestamps and base
// 60 numbers included, is a string.
func resolvePlain(v string) scalar {
	switch v {
	case "", "~", "null", "Null", "NULL":
		return scalar{kind: scalarNull}
	case "y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON":
		return scalar{kind: scalarBool, bool: true}
	case "n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF":
		return scalar{kind: scalarBool}
	case ".nan", ".NaN", ".NAN":
		return scalar{kind: scalarFloat, text: "NaN"}
	case ".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF":
		return scalar{kind: scalarFloat, text: "Inf"}
	case "-.inf", "-.Inf", "-.INF":
		return scalar{kind: scalarFloat, text: "-Inf"}
	}
	switch c := v[0]; {
	case c == '.':
		if _, err := strconv.ParseFloat(v, 64); err == nil {
			return scalar{kind: scalarFloat, text: v}
		}
	case c == '+' || c == '-' || c >= '0' && c <= '9':
		return resolveNumber(v)
	}
	return scalar{text: v}
}

func resolveNumber(v string) scalar {
	plain := strings.ReplaceAll(v, "_", "")
	if i, err := strconv.ParseInt(plain, 0, 64); err == nil {
		if i == 0 && plain[0] == '-' {
			return scalar{kind: scalarInt, text: "-0"}
		}
		return scalar{kind: scalarInt, text: strconv.FormatInt(i, 10)}
	}
	if u, err := strconv.ParseUint(plain, 0, 64); err == nil {
		return scalar{kind: scalarInt, text: strconv.FormatUint(u, 10)}
	}
	if isDecimalFloat(plain) {
		// Decimal integers of more than 64 bits arrive here too; kubectl
		// rounds them to a float.
		if _, err := strconv.ParseFloat(plain, 64); err == nil {
			return scalar{kind: scalarFloat, text: plain}
		}
	}
	return scalar{text: v}
}

// isDecimalFloat reports whether s is [-+]? ( .digits | digits [.digits*] )
// [ (e|E) [-+]? digits ].
func isDecimalFloat(s string) bool {
	s = trimSign(s)
	whole := leadingDigits(s)
	s = s[whole:]
	fraction := 0
	if s != "" && s[0] == '.' {
		fraction = leadingDigits(s[1:])
		s = s[1+fraction:]
	}
	if whole == 0 && fraction == 0 {
		return false
	}
	if s != "" && (s[0] == 'e' || s[0] == 'E') {
		s = trimSign(s[1:])
		digits := leadingDigits(s)
		return digits > 0 && digits == len(s)
	}
	return s == ""
}

func trimSign(s string) string {
	if s != "" && (s[0] == '+' || s[0] == '-') {
		return s[1:]
	}
	return s
}

func leadingDigits(s string) int {
	n := 0
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	return n
}
