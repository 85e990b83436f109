// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// poisoned yields copies of a message in each of which one field has a value that
// nobody would write: every string, bytes, number and enum field at any depth, keys of
// maps included, with some of the values for its kind, or, if all, with each. What a
// field is in is made if the message does not have it.
func poisoned(base proto.Message, all bool) iter.Seq2[string, proto.Message] {
	return func(yield func(string, proto.Message) bool) {
		count := 0
		for path := range leaves(base.ProtoReflect().Descriptor(), nil) {
			values := poisons(path[len(path)-1].field, path[len(path)-1].key)
			for i, v := range values {
				if !all && i != count%len(values) {
					continue
				}
				out := proto.Clone(base)
				path.set(out.ProtoReflect(), v)
				if !yield(fmt.Sprintf("%s = %.24q", path, fmt.Sprint(v.Interface())), out) {
					return
				}
			}
			count++
		}
	}
}

// fieldPath leads to a field of a message.
type fieldPath []fieldStep

// fieldStep is a field on the way: of a list the first element, of a map the value of
// a key, or, at the end of a path, perhaps the key itself.
type fieldStep struct {
	field protoreflect.FieldDescriptor
	key   bool
}

// String returns "spec.http[0].match[0].name".
func (p fieldPath) String() string {
	var b strings.Builder
	b.WriteString("spec")
	for _, s := range p {
		b.WriteString("." + s.field.TextName())
		switch {
		case s.key:
			b.WriteString("{key}")
		case s.field.IsMap():
			b.WriteString("[key]")
		case s.field.IsList():
			b.WriteString("[0]")
		}
	}
	return b.String()
}

// leaves yields the paths of all fields that are no messages. A message that is inside
// itself is followed once.
func leaves(in protoreflect.MessageDescriptor, above fieldPath) iter.Seq[fieldPath] {
	return func(yield func(fieldPath) bool) {
		for i := range in.Fields().Len() {
			f := in.Fields().Get(i)
			value := f
			if f.IsMap() {
				if !yield(append(slices.Clone(above), fieldStep{f, true})) {
					return
				}
				value = f.MapValue()
			}
			path := append(slices.Clone(above), fieldStep{f, false})
			if value.Message() == nil {
				if !yield(path) {
					return
				}
				continue
			}
			if slices.ContainsFunc(above, func(s fieldStep) bool { return s.field == f }) {
				continue
			}
			for leaf := range leaves(value.Message(), path) {
				if !yield(leaf) {
					return
				}
			}
		}
	}
}

const mapKey = "key"

func (p fieldPath) set(m protoreflect.Message, v protoreflect.Value) {
	for _, s := range p[:len(p)-1] {
		switch {
		case s.field.IsMap():
			m = m.Mutable(s.field).Map().Mutable(protoreflect.ValueOfString(mapKey).MapKey()).Message()
		case s.field.IsList():
			list := m.Mutable(s.field).List()
			if list.Len() == 0 {
				list.AppendMutable()
			}
			m = list.Get(0).Message()
		default:
			m = m.Mutable(s.field).Message()
		}
	}
	last := p[len(p)-1]
	switch {
	case last.key:
		entries := m.Mutable(last.field).Map()
		entries.Set(v.MapKey(), entries.NewValue())
	case last.field.IsMap():
		m.Mutable(last.field).Map().Set(protoreflect.ValueOfString(mapKey).MapKey(), v)
	case last.field.IsList():
		if list := m.Mutable(last.field).List(); list.Len() == 0 {
			list.Append(v)
		} else {
			list.Set(0, v)
		}
	default:
		m.Set(last.field, v)
	}
}

// poisons returns values for a field, or for the keys of a map.
func poisons(f protoreflect.FieldDescriptor, key bool) []protoreflect.Value {
	kind := f.Kind()
	switch {
	case key:
		kind = f.MapKey().Kind()
	case f.IsMap():
		kind = f.MapValue().Kind()
	}
	switch kind {
	case protoreflect.StringKind:
		return values(protoreflect.ValueOfString,
			"\xff", "a\nb", "a\x00b", "", "%", "a b|c", "\u2028é", strings.Repeat("x", 70_000), "http://[::1/{{", "*.*", "1.2.3.4.5")
	case protoreflect.BytesKind:
		return values(protoreflect.ValueOfBytes, []byte{0xff, 0}, make([]byte, 2<<20))
	case protoreflect.BoolKind:
		return values(protoreflect.ValueOfBool, true, false)
	case protoreflect.EnumKind:
		return values(protoreflect.ValueOfEnum, 99, -1)
	case protoreflect.Int32Kind, protoreflect.Sint32Kind, protoreflect.Sfixed32Kind:
		return values(protoreflect.ValueOfInt32, -1, 0, math.MaxInt32, math.MinInt32)
	case protoreflect.Int64Kind, protoreflect.Sint64Kind, protoreflect.Sfixed64Kind:
		return values(protoreflect.ValueOfInt64, -1, 0, math.MaxInt64, math.MinInt64)
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind:
		return values(protoreflect.ValueOfUint32, 0, math.MaxUint32, 70_000)
	case protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		return values(protoreflect.ValueOfUint64, 0, math.MaxUint64)
	case protoreflect.FloatKind:
		return values(protoreflect.ValueOfFloat32, float32(math.NaN()), -1, float32(math.Inf(1)))
	case protoreflect.DoubleKind:
		return values(protoreflect.ValueOfFloat64, math.NaN(), -1, math.Inf(1))
	default:
		return nil
	}
}

func values[T any](of func(T) protoreflect.Value, list ...T) []protoreflect.Value {
	out := make([]protoreflect.Value, 0, len(list))
	for _, v := range list {
		out = append(out, of(v))
	}
	return out
}
