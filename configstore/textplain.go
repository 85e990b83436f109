// SPDX-License-Identifier: Apache-2.0

package configstore

import (
	"reflect"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/runtime/protoimpl"
)

// maxPlainDepth keeps plainValue to shallow messages. textWalk visits deeper ones.
const maxPlainDepth = 100

// plainMessage reports whether a message holds only plain text, which no rule forbids, and only fields
// and values of enums that its type knows (see Unread). It reads the fields of the generated Go types
// and allocates nothing, because protobuf's reflection allocates for each list and map. It returns
// false if it is unsure, and textWalk then examines the message.
func plainMessage(m proto.Message) bool { return plainValue(reflect.ValueOf(m), 0) }

// plainValue is plainMessage for a value in a message.
func plainValue(v reflect.Value, depth int) bool {
	switch v.Kind() {
	case reflect.String:
		return isPlain(v.String())
	case reflect.Pointer, reflect.Interface:
		return v.IsNil() || plainValue(v.Elem(), depth)
	case reflect.Struct:
		return v.CanInterface() && plainStruct(v, depth+1)
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return true
		}
		for i := range v.Len() {
			if !plainValue(v.Index(i), depth) {
				return false
			}
		}
		return true
	case reflect.Map:
		return v.CanInterface() && plainMap(v, depth)
	case reflect.Int32:
		return v.Type() == reflect.TypeFor[int32]() || v.CanInterface() && plainEnum(v)
	default:
		return true
	}
}

// plainEnum reports whether a number has a name in its enum.
func plainEnum(number reflect.Value) bool {
	enum, ok := reflect.TypeAssert[protoreflect.Enum](number)
	return ok && enum.Descriptor().Values().ByNumber(enum.Number()) != nil
}

// plainStruct is plainValue for a message, or for the wrapper of a member of a oneof.
func plainStruct(v reflect.Value, depth int) bool {
	first := 0
	if message, ok := reflect.TypeAssert[proto.Message](v.Addr()); ok {
		m := message.ProtoReflect()
		generated := v.NumField() > 0 && v.Field(0).Type() == reflect.TypeFor[protoimpl.MessageState]()
		if !generated || depth > maxPlainDepth || len(m.GetUnknown()) > 0 || isOpaque(m.Descriptor()) {
			return false
		}
		first = 1
	}
	for i := first; i < v.NumField(); i++ {
		if !plainValue(v.Field(i), depth) {
			return false
		}
	}
	return true
}

// isOpaque reports whether strings of a message can be outside its fields: in extensions, or in an Any.
func isOpaque(descriptor protoreflect.MessageDescriptor) bool {
	return descriptor.ExtensionRanges().Len() > 0 || descriptor.FullName() == "google.protobuf.Any"
}

// plainMap ranges over the maps of labels and ports without reflection, which would allocate each of
// their keys.
func plainMap(v reflect.Value, depth int) bool {
	switch m := v.Interface().(type) {
	case map[string]string:
		return isPlainMap(m)
	case map[string]uint32:
		for key := range m {
			if !isPlain(key) {
				return false
			}
		}
		return true
	}
	for entries := v.MapRange(); entries.Next(); {
		if !plainValue(entries.Key(), depth) || !plainValue(entries.Value(), depth) {
			return false
		}
	}
	return true
}

func isPlainMap(m map[string]string) bool {
	for key, value := range m {
		if !isPlain(key) || !isPlain(value) {
			return false
		}
	}
	return true
}

// isPlain reports whether s is UTF-8 without control characters.
func isPlain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' {
			return utf8.ValidString(s[i:]) && !hasControl(s[i:], false)
		}
	}
	return true
}
