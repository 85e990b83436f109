// SPDX-License-Identifier: Apache-2.0

package configstore

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/pilotkit/pilotkit/internal/excerpt"
)

// maxMessageDepth bounds the nesting of messages. protobuf decodes no message that is nested
// deeper. The bound also ends the walk of a cyclic message, which only a Go program can make.
const maxMessageDepth = 10_000

// textWalk visits every string of an object, and what its types do not know, by the descriptors of its messages.
type textWalk struct {
	rule func(protoreflect.FieldDescriptor) TextRule
	// out are the strings that break a rule, and unread is what Unread returns.
	out, unread violations
	// broken: the object cannot be encoded. tooDeep ends the walk.
	broken, tooDeep bool
}

// textPlace is a place in an object, which becomes text when something is found.
type textPlace struct {
	parent *textPlace
	name   string
}

// child returns a field, or with a name in brackets an element of a list or a map.
func (p *textPlace) child(name string) *textPlace { return &textPlace{parent: p, name: name} }

// maxFieldLength bounds the path of a violation.
const maxFieldLength = 512

// String returns the path, for example "spec.endpoints[0].labels[app]".
func (p *textPlace) String() string {
	var names []string
	for at := p; at != nil; at = at.parent {
		names = append(names, at.name)
	}
	slices.Reverse(names)
	var b strings.Builder
	for i, name := range names {
		if i > 0 && name[0] != '[' {
			b.WriteByte('.')
		}
		b.WriteString(name)
	}
	return excerpt.CutTo(b.String(), maxFieldLength)
}

// message visits a message. holder is the field that holds it: its rule is that of
// the strings in the types of protobuf that stand for values of any shape.
func (w *textWalk) message(m protoreflect.Message, at *textPlace, holder protoreflect.FieldDescriptor, depth int) {
	switch {
	case w.tooDeep:
		return
	case depth > maxMessageDepth:
		w.tooDeep, w.broken = true, true
		w.out.add(func() Violation {
			return Violation{Field: at.String(), Message: "nests deeper than " + strconv.Itoa(maxMessageDepth) + " messages"}
		})
		return
	}
	w.unknown(m.GetUnknown(), at)
	switch m.Descriptor().FullName() {
	case "google.protobuf.Struct", "google.protobuf.ListValue", "google.protobuf.Value", "google.protobuf.StringValue":
		w.value(m, at, holder, depth)
		return
	case "google.protobuf.Any":
		w.any(m, at, depth)
		return
	}
	for _, f := range populated(m) {
		place := at.child(f.descriptor.JSONName())
		switch fd := f.descriptor; {
		case fd.IsMap():
			w.entries(f.value.Map(), fd, place, depth)
		case fd.IsList():
			for i := range f.value.List().Len() {
				w.single(f.value.List().Get(i), fd, place.child("["+strconv.Itoa(i)+"]"), depth)
			}
		default:
			w.single(f.value, fd, place, depth)
		}
	}
}

// populatedField is a field that is set.
type populatedField struct {
	descriptor protoreflect.FieldDescriptor
	value      protoreflect.Value
}

// populated returns the fields of a message that are set and can hold strings or enums, in the order of
// their numbers.
func populated(m protoreflect.Message) []populatedField {
	var out []populatedField
	m.Range(func(fd protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		if fd.Message() != nil || fd.Kind() == protoreflect.StringKind || fd.Enum() != nil {
			out = append(out, populatedField{fd, value})
		}
		return true
	})
	slices.SortFunc(out, func(a, b populatedField) int {
		return cmp.Compare(a.descriptor.Number(), b.descriptor.Number())
	})
	return out
}

// single visits a value that is neither a list nor a map.
func (w *textWalk) single(value protoreflect.Value, fd protoreflect.FieldDescriptor, at *textPlace, depth int) {
	switch {
	case fd.Message() != nil:
		w.message(value.Message(), at, fd, depth+1)
	case fd.Kind() == protoreflect.StringKind:
		w.check(w.ruleOf(fd), value.String(), at, false)
	case fd.Enum() != nil:
		w.enum(value.Enum(), fd.Enum(), at)
	}
}

func (w *textWalk) entries(m protoreflect.Map, fd protoreflect.FieldDescriptor, at *textPlace, depth int) {
	for _, key := range sortedKeys(m) {
		place := at.child("[" + excerpt.Name(key.String()) + "]")
		if fd.MapKey().Kind() == protoreflect.StringKind {
			w.check(w.ruleOf(fd.MapKey()), key.String(), place, true)
		}
		w.single(m.Get(key), fd.MapValue(), place, depth)
	}
}

// value visits the content of a google.protobuf.Value. Each part has the path that it has in YAML.
func (w *textWalk) value(m protoreflect.Message, at *textPlace, holder protoreflect.FieldDescriptor, depth int) {
	for _, f := range populated(m) {
		switch fd := f.descriptor; {
		case fd.IsMap():
			for _, key := range sortedKeys(f.value.Map()) {
				place := at.child(excerpt.Name(key.String()))
				w.check(w.ruleOf(holder), key.String(), place, true)
				w.message(f.value.Map().Get(key).Message(), place, holder, depth+1)
			}
		case fd.IsList():
			for i := range f.value.List().Len() {
				w.message(f.value.List().Get(i).Message(), at.child("["+strconv.Itoa(i)+"]"), holder, depth+1)
			}
		case fd.Message() != nil:
			w.message(f.value.Message(), at, holder, depth+1)
		case fd.Kind() == protoreflect.StringKind:
			w.check(w.ruleOf(holder), f.value.String(), at, false)
		}
	}
}

// any visits a message that is held encoded, if its type is known to the program.
func (w *textWalk) any(m protoreflect.Message, at *textPlace, depth int) {
	fields := m.Descriptor().Fields()
	url := m.Get(fields.ByName("type_url")).String()
	w.check(TextLine, url, at.child("@type"), false)
	kind, err := protoregistry.GlobalTypes.FindMessageByURL(url)
	if err != nil {
		return
	}
	held := kind.New()
	options := proto.UnmarshalOptions{AllowPartial: true}
	if err := options.Unmarshal(m.Get(fields.ByName("value")).Bytes(), held.Interface()); err != nil {
		w.broken = true
		w.out.add(func() Violation {
			return Violation{Field: at.String(), Message: excerpt.Sprintf("must hold a %s: %v", kind.Descriptor().FullName(), err)}
		})
		return
	}
	w.message(held, at, nil, depth+1)
}

// sortedKeys returns the keys of a map in the order of their text.
func sortedKeys(m protoreflect.Map) []protoreflect.MapKey {
	keys := make([]protoreflect.MapKey, 0, m.Len())
	m.Range(func(key protoreflect.MapKey, _ protoreflect.Value) bool {
		keys = append(keys, key)
		return true
	})
	slices.SortFunc(keys, func(a, b protoreflect.MapKey) int { return strings.Compare(a.String(), b.String()) })
	return keys
}
