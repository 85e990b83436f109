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

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/wrapperspb"
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
		if v, ok = protoreflect.ValueOfString(s.text), s.kind == scalarString; !ok {
			return v, notString(s)
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

// notString returns the error of a value in the place of a string.
func notString(s scalar) error {
	switch s.kind {
	case scalarBool, scalarInt, scalarFloat:
		return fmt.Errorf("must be a string, is %s; quote it", s.describe())
	default:
		return fmt.Errorf("must be a string, is %s", s.describe())
	}
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
	case scalarBool, notScalar:
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

// parseNumber reads a number as protojson reads that of a wrapper of its kind.
func parseNumber(s scalar, kind protoreflect.Kind) (v protoreflect.Value, ok bool) {
	text := []byte(s.text)
	switch s.kind {
	case scalarInt, scalarFloat:
		if !json.Valid(text) {
			// A float of YAML such as .5, or one that JSON has no spelling for, which kubectl refuses.
			f, err := strconv.ParseFloat(s.text, 64)
			if err != nil {
				return v, false
			}
			text = strconv.AppendFloat(nil, f, 'g', -1, 64)
		}
	case scalarString:
		text = jsonString(s.text)
	default:
		return v, false
	}
	number := wrapperOf(kind)
	err := protojson.Unmarshal(text, number.Interface())
	return number.Get(number.Descriptor().Fields().ByName("value")), err == nil
}

// wrapperOf returns a message with a number of a kind.
func wrapperOf(kind protoreflect.Kind) protoreflect.Message {
	switch kind {
	case protoreflect.Int32Kind, protoreflect.Sint32Kind, protoreflect.Sfixed32Kind:
		return (&wrapperspb.Int32Value{}).ProtoReflect()
	case protoreflect.Int64Kind, protoreflect.Sint64Kind, protoreflect.Sfixed64Kind:
		return (&wrapperspb.Int64Value{}).ProtoReflect()
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind:
		return (&wrapperspb.UInt32Value{}).ProtoReflect()
	case protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		return (&wrapperspb.UInt64Value{}).ProtoReflect()
	case protoreflect.FloatKind:
		return (&wrapperspb.FloatValue{}).ProtoReflect()
	default:
		return (&wrapperspb.DoubleValue{}).ProtoReflect()
	}
}

// parseInt takes every notation of an integer: 8080, 8080.0, 8.08e3.
func parseInt(text string, bits int) (int64, bool) {
	if i, err := strconv.ParseInt(text, 10, bits); err == nil || !strings.ContainsAny(text, ".e") {
		return i, err == nil
	}
	f, err := strconv.ParseFloat(text, 64)
	limit := math.Ldexp(1, bits-1)
	return int64(f), err == nil && f == math.Trunc(f) && f >= -limit && f < limit
}
