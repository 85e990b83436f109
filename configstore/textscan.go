// SPDX-License-Identifier: Apache-2.0

package configstore

import (
	"reflect"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// textScanner reports whether a message holds only plain text, which no rule forbids, and no fields
// that are unknown to its type (see Unread). It reads the fields of the generated Go types and
// allocates nothing, so that checking the common kinds costs little more than reading their
// strings. A nil or unsure scanner reports false, and textWalk then examines the message.
type textScanner struct {
	message reflect.Type // pointer to a struct
	plan    *scanPlan
}

// scanPlan lists the fields of a struct that are strings, enums or messages.
type scanPlan struct {
	fields []scanField
	// unknown is the index of the field for unknown fields; -1: there is none.
	unknown int
	// opaque: there may be strings in no field, as in extensions and Any.
	opaque bool
}

type scanField struct {
	index int
	kind  scanKind
	// plan is that of the messages in the field.
	plan *scanPlan
	// members are the plans of a oneof, by the types of its wrappers.
	members map[reflect.Type]*scanPlan
	// values are the values of an enum.
	values protoreflect.EnumValueDescriptors
}

type scanKind int

const (
	scanString scanKind = iota
	scanStrings
	scanMap
	scanMessage
	scanMessages
	scanOneof
	scanEnum
	scanEnums
)

// maxScanDepth keeps the scanner to shallow messages; deeper ones are walked.
const maxScanDepth = 100

// plain reports whether all strings of a message, which may not be nil, are plain.
func (s *textScanner) plain(m proto.Message) bool {
	v := reflect.ValueOf(m)
	return s != nil && v.Type() == s.message && !v.IsNil() && s.plan.plain(v.Elem(), 0)
}

func (p *scanPlan) plain(v reflect.Value, depth int) bool {
	if p.opaque || depth > maxScanDepth || p.unknown >= 0 && v.Field(p.unknown).Len() > 0 {
		return false
	}
	for i := range p.fields {
		f := &p.fields[i]
		if !f.plain(v.Field(f.index), depth) {
			return false
		}
	}
	return true
}

func (f *scanField) plain(v reflect.Value, depth int) bool {
	switch f.kind {
	case scanString:
		return isPlain(v.String())
	case scanStrings:
		for i := range v.Len() {
			if !isPlain(v.Index(i).String()) {
				return false
			}
		}
		return true
	case scanMap:
		return f.plainMap(v, depth)
	case scanMessage:
		return v.IsNil() || f.plan.plain(v.Elem(), depth+1)
	case scanMessages:
		for i := range v.Len() {
			if element := v.Index(i); !element.IsNil() && !f.plan.plain(element.Elem(), depth+1) {
				return false
			}
		}
		return true
	case scanEnum:
		return f.knows(v)
	case scanEnums:
		for i := range v.Len() {
			if !f.knows(v.Index(i)) {
				return false
			}
		}
		return true
	default: // scanOneof
		if v.IsNil() || v.Elem().IsNil() {
			return true
		}
		plan := f.members[v.Elem().Type()]
		return plan == nil || plan.plain(v.Elem().Elem(), depth)
	}
}

// knows reports whether a number is that of a value of the enum. One with presence is a pointer.
func (f *scanField) knows(v reflect.Value) bool {
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return true
		}
		v = v.Elem()
	}
	return f.values.ByNumber(protoreflect.EnumNumber(v.Int())) != nil //nolint:gosec // enums have 32 bits
}

// plainMap ranges over the maps of labels and ports without reflection, which
// would allocate each of their keys.
func (f *scanField) plainMap(v reflect.Value, depth int) bool {
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
		if key := entries.Key(); key.Kind() == reflect.String && !isPlain(key.String()) {
			return false
		}
		switch value := entries.Value(); {
		case value.Kind() == reflect.String:
			if !isPlain(value.String()) {
				return false
			}
		case f.plan != nil && !value.IsNil() && !f.plan.plain(value.Elem(), depth+1):
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

// scanCompiler makes the plans of messages and of the messages nested in them.
type scanCompiler struct {
	plans map[reflect.Type]*scanPlan
	// foreign: a message is of no generated Go type with a field for each field.
	foreign bool
}

// newTextScanner returns the scanner for messages of the type of m, or nil if it is
// of a kind that the scanner cannot read.
func newTextScanner(m proto.Message) *textScanner {
	c := scanCompiler{plans: map[reflect.Type]*scanPlan{}}
	plan := c.message(m.ProtoReflect())
	if c.foreign {
		return nil
	}
	return &textScanner{message: reflect.TypeOf(m), plan: plan}
}

func (c *scanCompiler) message(m protoreflect.Message) *scanPlan {
	pointer := reflect.TypeOf(m.Interface())
	if pointer.Kind() != reflect.Pointer || pointer.Elem().Kind() != reflect.Struct {
		c.foreign = true
		return nil
	}
	if plan, ok := c.plans[pointer]; ok {
		return plan
	}
	descriptor := m.Descriptor()
	plan := &scanPlan{opaque: isOpaque(descriptor), unknown: unknownFields(pointer.Elem())}
	c.plans[pointer] = plan
	oneofs := map[int]*scanField{}
	for i := range descriptor.Fields().Len() {
		fd := descriptor.Fields().Get(i)
		switch oneof := fd.ContainingOneof(); {
		case !scanned(fd):
		case oneof != nil && !oneof.IsSynthetic():
			c.member(m, fd, oneofs)
		default:
			index := structField(pointer.Elem(), "protobuf", "name="+string(fd.Name()))
			plan.fields = append(plan.fields, c.field(m, fd, index, pointer.Elem()))
		}
	}
	for _, field := range oneofs {
		plan.fields = append(plan.fields, *field)
	}
	return plan
}

func isOpaque(descriptor protoreflect.MessageDescriptor) bool {
	return descriptor.ExtensionRanges().Len() > 0 || descriptor.FullName() == "google.protobuf.Any"
}

// field plans a field at an index of the struct that holds it.
func (c *scanCompiler) field(m protoreflect.Message, fd protoreflect.FieldDescriptor, index int, holder reflect.Type) scanField {
	f := scanField{index: index}
	switch {
	case index < 0:
		c.foreign = true
	case fd.IsMap():
		f.kind = scanMap
		if fd.MapValue().Message() != nil {
			f.plan = c.message(m.NewField(fd).Map().NewValue().Message())
		}
	case fd.IsList() && fd.Message() != nil:
		f.kind, f.plan = scanMessages, c.message(m.NewField(fd).List().NewElement().Message())
	case fd.IsList() && fd.Enum() != nil:
		f.kind, f.values = scanEnums, fd.Enum().Values()
	case fd.IsList():
		f.kind = scanStrings
	case fd.Message() != nil:
		f.kind, f.plan = scanMessage, c.message(m.NewField(fd).Message())
	case fd.Enum() != nil:
		f.kind, f.values = scanEnum, fd.Enum().Values()
	default:
		// A string with presence is a pointer, which no kind here has.
		c.foreign = c.foreign || holder.Field(index).Type.Kind() != reflect.String
	}
	return f
}

// member plans a member of a oneof: a struct with one field, behind an interface.
func (c *scanCompiler) member(m protoreflect.Message, fd protoreflect.FieldDescriptor, oneofs map[int]*scanField) {
	sample := m.New()
	sample.Set(fd, sample.NewField(fd))
	v := reflect.ValueOf(sample.Interface()).Elem()
	index := structField(v.Type(), "protobuf_oneof", string(fd.ContainingOneof().Name()))
	if index < 0 || v.Field(index).Kind() != reflect.Interface || v.Field(index).IsNil() {
		c.foreign = true
		return
	}
	if oneofs[index] == nil {
		oneofs[index] = &scanField{index: index, kind: scanOneof, members: map[reflect.Type]*scanPlan{}}
	}
	wrapper := v.Field(index).Elem().Type()
	oneofs[index].members[wrapper] = &scanPlan{fields: []scanField{c.field(m, fd, 0, wrapper.Elem())}, unknown: -1}
}

// structField returns the index of the field with a part in one of its tags, or -1.
func structField(t reflect.Type, tag, part string) int {
	for i := range t.NumField() {
		for have := range strings.SplitSeq(t.Field(i).Tag.Get(tag), ",") {
			if have == part {
				return i
			}
		}
	}
	return -1
}

// unknownFields returns the index of the field of a generated struct that holds what its type does not know, or -1.
func unknownFields(t reflect.Type) int {
	for i := range t.NumField() {
		if f := t.Field(i); f.Name == "unknownFields" && f.Type.Kind() == reflect.Slice {
			return i
		}
	}
	return -1
}

// scanned reports whether a field is one of the plans.
func scanned(fd protoreflect.FieldDescriptor) bool {
	if fd.IsMap() {
		return scanned(fd.MapKey()) || scanned(fd.MapValue())
	}
	return fd.Message() != nil || fd.Enum() != nil || fd.Kind() == protoreflect.StringKind
}
