// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// expected names the values that a scalar field takes.
func expected(fd protoreflect.FieldDescriptor) string {
	switch fd.Kind() {
	case protoreflect.BoolKind:
		return "true or false"
	case protoreflect.StringKind:
		return "a string"
	case protoreflect.BytesKind:
		return "a string of base64"
	case protoreflect.EnumKind:
		return "one of " + enumNames(fd.Enum())
	case protoreflect.FloatKind, protoreflect.DoubleKind:
		return "a number"
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind:
		return "an integer from 0 to 4294967295"
	case protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		return "an integer from 0 to 18446744073709551615"
	case protoreflect.Int32Kind, protoreflect.Sint32Kind, protoreflect.Sfixed32Kind:
		return "an integer of 32 bits"
	default:
		return "an integer of 64 bits"
	}
}

func enumNames(ed protoreflect.EnumDescriptor) string {
	const limit = 12
	values := ed.Values()
	var names []string
	for i := range min(values.Len(), limit) {
		names = append(names, string(values.Get(i).Name()))
	}
	if values.Len() > limit {
		names = append(names, "…")
	}
	return strings.Join(names, ", ")
}

// parseScalar returns the value of a scalar for a field, by the rules of
// protobuf's JSON mapping: numbers may be given as strings, integers in any
// notation that denotes one, enums by name or number. A map key is always a
// string.
func parseScalar(s scalar, fd protoreflect.FieldDescriptor, isKey bool) (protoreflect.Value, error) {
	var v protoreflect.Value
	ok := false
	switch fd.Kind() {
	case protoreflect.StringKind:
		v, ok = protoreflect.ValueOfString(s.text), s.kind == scalarString
		if !ok && s.kind != scalarNull {
			return v, fmt.Errorf("must be a string, is %s; quote it", s.describe())
		}
	case protoreflect.BoolKind:
		v, ok = parseBool(s, isKey)
	case protoreflect.EnumKind:
		v, ok = parseEnum(s, fd.Enum())
	case protoreflect.BytesKind:
		v, ok = parseBytes(s)
	default:
		v, ok = parseNumber(s, fd.Kind())
	}
	if !ok {
		return v, errors.New("must be " + expected(fd) + ", is " + s.describe())
	}
	return v, nil
}

func parseBool(s scalar, isKey bool) (protoreflect.Value, bool) {
	if isKey {
		return protoreflect.ValueOfBool(s.text == "true"), s.text == "true" || s.text == "false"
	}
	return protoreflect.ValueOfBool(s.bool), s.kind == scalarBool
}

func parseEnum(s scalar, ed protoreflect.EnumDescriptor) (protoreflect.Value, bool) {
	switch s.kind {
	case scalarString:
		if vd := ed.Values().ByName(protoreflect.Name(s.text)); vd != nil {
			return protoreflect.ValueOfEnum(vd.Number()), true
		}
	case scalarInt, scalarFloat:
		i, ok := parseInt(s.text, 32)
		return protoreflect.ValueOfEnum(protoreflect.EnumNumber(i)), ok
	case scalarNull:
		return protoreflect.ValueOfEnum(0), ed.FullName() == "google.protobuf.NullValue"
	case scalarBool:
	}
	return protoreflect.Value{}, false
}

// parseBytes reads base64 in either alphabet. As in an API server, the padding
// must be there.
func parseBytes(s scalar) (protoreflect.Value, bool) {
	text, enc := s.text, base64.StdEncoding
	if strings.ContainsAny(text, "-_") {
		enc = base64.URLEncoding
	}
	b, err := enc.DecodeString(text)
	return protoreflect.ValueOfBytes(b), err == nil && s.kind == scalarString
}

func parseNumber(s scalar, kind protoreflect.Kind) (v protoreflect.Value, ok bool) {
	text := s.text
	switch s.kind {
	case scalarInt:
	case scalarFloat:
		// JSON has no spelling for these, so kubectl refuses them.
		if text == "NaN" || strings.HasSuffix(text, "Inf") {
			return v, false
		}
	case scalarString:
		if f, named := namedFloat(text); named {
			return floatValue(f, kind)
		}
		if !isJSONNumber(text) {
			return v, false
		}
	default:
		return v, false
	}
	switch kind {
	case protoreflect.Int32Kind, protoreflect.Sint32Kind, protoreflect.Sfixed32Kind:
		i, ok := parseInt(text, 32)
		return protoreflect.ValueOfInt32(int32(i)), ok
	case protoreflect.Int64Kind, protoreflect.Sint64Kind, protoreflect.Sfixed64Kind:
		i, ok := parseInt(text, 64)
		return protoreflect.ValueOfInt64(i), ok
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind:
		u, ok := parseUint(text, 32)
		return protoreflect.ValueOfUint32(uint32(u)), ok
	case protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		u, ok := parseUint(text, 64)
		return protoreflect.ValueOfUint64(u), ok
	case protoreflect.FloatKind:
		f, err := strconv.ParseFloat(text, 32)
		return protoreflect.ValueOfFloat32(float32(f)), err == nil
	default:
		f, err := strconv.ParseFloat(text, 64)
		return protoreflect.ValueOfFloat64(f), err == nil
	}
}

// namedFloat returns the values that JSON numbers cannot have.
func namedFloat(text string) (float64, bool) {
	switch text {
	case "NaN":
		return math.NaN(), true
	case "Infinity":
		return math.Inf(1), true
	case "-Infinity":
		return math.Inf(-1), true
	default:
		return 0, false
	}
}

func floatValue(f float64, kind protoreflect.Kind) (protoreflect.Value, bool) {
	switch kind {
	case protoreflect.FloatKind:
		return protoreflect.ValueOfFloat32(float32(f)), true
	case protoreflect.DoubleKind:
		return protoreflect.ValueOfFloat64(f), true
	default:
		return protoreflect.Value{}, false
	}
}

func isJSONNumber(s string) bool {
	return s != "" && (s[0] == '-' || s[0] >= '0' && s[0] <= '9') &&
		s[len(s)-1] >= '0' && s[len(s)-1] <= '9' && json.Valid([]byte(s))
}

// parseInt takes every notation of an integer: 8080, 8080.0, 8.08e3.
func parseInt(text string, bits int) (int64, bool) {
	if i, err := strconv.ParseInt(text, 10, bits); err == nil {
		return i, true
	}
	f, err := strconv.ParseFloat(text, 64)
	limit := math.Ldexp(1, bits-1)
	if err != nil || f != math.Trunc(f) || f < -limit || f >= limit || isDigits(text) {
		return 0, false
	}
	return int64(f), true
}

func parseUint(text string, bits int) (uint64, bool) {
	if u, err := strconv.ParseUint(text, 10, bits); err == nil {
		return u, true
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || f != math.Trunc(f) || f < 0 || f >= math.Ldexp(1, bits) || isDigits(text) {
		return 0, false
	}
	return uint64(f), true
}

// isDigits reports whether a text that is out of range as an integer has no other interpretation.
func isDigits(text string) bool {
	text = trimSign(text)
	return leadingDigits(text) == len(text) && strings.Trim(text, "0") != ""
}
