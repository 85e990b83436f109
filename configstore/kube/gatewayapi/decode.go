// SPDX-License-Identifier: Apache-2.0

package gatewayapi

import (
	"encoding/json"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/internal/excerpt"
)

// findings are the problems of decoded values.
type findings struct {
	// unknown are fields that the Go types do not have, and wrong are values of a wrong type.
	unknown, wrong []configstore.Violation
}

func (f *findings) mismatch(path, what string, value *structpb.Value) {
	f.wrong = append(f.wrong, configstore.Violation{Field: path, Message: "must be " + what + ", is " + describe(value)})
}

func describe(value *structpb.Value) string {
	switch v := value.GetKind().(type) {
	case *structpb.Value_StringValue:
		return "the string " + strconv.Quote(excerpt.Name(v.StringValue))
	case *structpb.Value_NumberValue:
		return "the number " + strconv.FormatFloat(v.NumberValue, 'g', -1, 64)
	case *structpb.Value_BoolValue:
		return "a boolean"
	case *structpb.Value_ListValue:
		return "a list"
	case *structpb.Value_StructValue:
		return "an object"
	default:
		return "null"
	}
}

// decode writes a value into a field of a Kubernetes Go type, like encoding/json: null means
// absent. Invalid values are recorded with their path and skipped.
func (f *findings) decode(path string, value *structpb.Value, into reflect.Value) {
	if _, null := value.GetKind().(*structpb.Value_NullValue); null || value.GetKind() == nil {
		return
	}
	if unmarshaler, ok := reflect.TypeAssert[json.Unmarshaler](into.Addr()); ok {
		f.unmarshal(path, value, unmarshaler)
		return
	}
	switch into.Kind() {
	case reflect.Pointer:
		next := reflect.New(into.Type().Elem())
		f.decode(path, value, next.Elem())
		into.Set(next)
	case reflect.Struct:
		f.decodeStruct(path, value, into)
	case reflect.Map:
		f.decodeMap(path, value, into)
	case reflect.Slice:
		f.decodeSlice(path, value, into)
	default:
		f.decodeScalar(path, value, into)
	}
}

// unmarshal is decode for types that decode themselves.
func (f *findings) unmarshal(path string, value *structpb.Value, into json.Unmarshaler) {
	text, err := protojson.Marshal(value)
	if err == nil {
		err = into.UnmarshalJSON(text)
	}
	if err != nil {
		f.wrong = append(f.wrong, configstore.Violation{Field: path, Message: "cannot be read: " + err.Error()})
	}
}

func (f *findings) decodeStruct(path string, value *structpb.Value, into reflect.Value) {
	from, ok := value.GetKind().(*structpb.Value_StructValue)
	if !ok {
		f.mismatch(path, "an object", value)
		return
	}
	for _, name := range sortedFields(from.StructValue) {
		if field := fieldNamed(into, name); field.IsValid() {
			f.decode(path+"."+name, from.StructValue.GetFields()[name], field)
		} else {
			f.unknown = append(f.unknown, configstore.Violation{Field: path + "." + name, Message: "unknown field"})
		}
	}
}

func sortedFields(s *structpb.Struct) []string {
	names := make([]string, 0, len(s.GetFields()))
	for name := range s.GetFields() {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// fieldNamed returns the field with a JSON name, including fields of inlined structs, or the zero
// Value if there is none.
func fieldNamed(in reflect.Value, name string) reflect.Value {
	of := in.Type()
	for i := range of.NumField() {
		tag, options, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
		switch {
		case tag == name && tag != "":
			return in.Field(i)
		case tag == "" && strings.Contains(options, "inline") && of.Field(i).Type.Kind() == reflect.Struct:
			if field := fieldNamed(in.Field(i), name); field.IsValid() {
				return field
			}
		}
	}
	return reflect.Value{}
}

func (f *findings) decodeMap(path string, value *structpb.Value, into reflect.Value) {
	from, ok := value.GetKind().(*structpb.Value_StructValue)
	if !ok {
		f.mismatch(path, "an object", value)
		return
	}
	of := into.Type()
	next := reflect.MakeMapWithSize(of, len(from.StructValue.GetFields()))
	for _, name := range sortedFields(from.StructValue) {
		element := reflect.New(of.Elem()).Elem()
		f.decode(path+"["+strconv.Quote(name)+"]", from.StructValue.GetFields()[name], element)
		next.SetMapIndex(reflect.ValueOf(name).Convert(of.Key()), element)
	}
	into.Set(next)
}

func (f *findings) decodeSlice(path string, value *structpb.Value, into reflect.Value) {
	from, ok := value.GetKind().(*structpb.Value_ListValue)
	if !ok {
		f.mismatch(path, "a list", value)
		return
	}
	values := from.ListValue.GetValues()
	next := reflect.MakeSlice(into.Type(), len(values), len(values))
	for i, element := range values {
		f.decode(path+"["+strconv.Itoa(i)+"]", element, next.Index(i))
	}
	into.Set(next)
}

func (f *findings) decodeScalar(path string, value *structpb.Value, into reflect.Value) {
	switch into.Kind() {
	case reflect.String:
		if v, ok := value.GetKind().(*structpb.Value_StringValue); ok {
			into.SetString(v.StringValue)
		} else {
			f.mismatch(path, "a string", value)
		}
	case reflect.Bool:
		if v, ok := value.GetKind().(*structpb.Value_BoolValue); ok {
			into.SetBool(v.BoolValue)
		} else {
			f.mismatch(path, "a boolean", value)
		}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v, ok := value.GetKind().(*structpb.Value_NumberValue)
		if !ok || v.NumberValue != math.Trunc(v.NumberValue) || math.Abs(v.NumberValue) > 1<<53 || into.OverflowInt(int64(v.NumberValue)) {
			f.mismatch(path, "an integer", value)
		} else {
			into.SetInt(int64(v.NumberValue))
		}
	default: // The Go types have no other kinds.
		f.mismatch(path, "a "+into.Kind().String(), value)
	}
}
