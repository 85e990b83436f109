// SPDX-License-Identifier: Apache-2.0

package configstore

import (
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/pilotkit/pilotkit/internal/excerpt"
)

// Fields of a newer API that this process cannot read are kept in the spec as unknown fields of
// protobuf. They are therefore copied, compared, stored and sent with the spec. Fields read from
// text have no number of their own, so their names are stored under one of the numbers that no API
// uses.
const (
	// namedField holds the name of a field.
	namedField protowire.Number = protowire.MaxValidNumber
	// placeholderField holds why the object cannot be read that a placeholder stands for.
	placeholderField = namedField - 1
)

// MarkUnread notes in a message that the text that it was read from has a field that cannot be read.
func MarkUnread(m protoreflect.Message, field string) { mark(m, namedField, field) }

func mark(m protoreflect.Message, number protowire.Number, text string) {
	unknown := protowire.AppendTag(append(protoreflect.RawFields{}, m.GetUnknown()...), number, protowire.BytesType)
	m.SetUnknown(protowire.AppendString(unknown, text))
}

// Unread returns the parts of a spec, which may be nil, that the process cannot read: fields that its type does not
// have, and numbers that its enums do not have. There are MaxViolations at most.
func Unread(spec proto.Message) []Violation {
	if spec == nil || plainMessage(spec) {
		return nil
	}
	var w textWalk
	w.message(spec.ProtoReflect(), &textPlace{name: "spec"}, nil, 0)
	return w.unread.list()
}

// unknown visits the fields of a message that its type does not have.
func (w *textWalk) unknown(fields protoreflect.RawFields, at *textPlace) {
	for len(fields) > 0 {
		number, kind, tag := protowire.ConsumeTag(fields)
		size := protowire.ConsumeFieldValue(number, kind, fields[max(tag, 0):])
		if tag < 0 || size < 0 {
			break
		}
		w.unknownField(number, fields[tag:tag+size], at)
		fields = fields[tag+size:]
	}
}

func (w *textWalk) unknownField(number protowire.Number, value []byte, at *textPlace) {
	text, _ := protowire.ConsumeBytes(value)
	w.unread.add(func() Violation {
		switch number {
		case placeholderField:
			return Violation{Field: at.String(), Message: "cannot be read: " + string(text)}
		case namedField:
			return Violation{Field: at.child(excerpt.Name(string(text))).String(), Message: "is not known"}
		default:
			return Violation{Field: at.String(), Message: "has the field number " + strconv.Itoa(int(number)) + ", which is not known"}
		}
	})
}

// enum visits a number of an enum.
func (w *textWalk) enum(number protoreflect.EnumNumber, of protoreflect.EnumDescriptor, at *textPlace) {
	if of.Values().ByNumber(number) == nil {
		w.unread.add(func() Violation {
			return Violation{Field: at.String(), Message: "has the value " + strconv.Itoa(int(number)) + ", which is not known"}
		})
	}
}

// Placeholder returns the replacement for an object that exists and cannot be read, if its kind has
// placeholders (see Schema.Closed) and the object has a name. c is the readable part of the object;
// its Spec may be nil. err is the reason why the rest cannot be read.
func (s *Schema) Placeholder(c Config, err error) (placeholder Config, ok bool) {
	if s.Closed == nil || c.Name == "" {
		return Config{}, false
	}
	if c.Spec != nil && !sameType(c.Spec, s.Spec) {
		c.Spec = nil
	}
	c.GroupVersionKind, c.Status = s.GroupVersionKind, nil
	for _, spec := range []proto.Message{c.Spec, nil} { // The fields that define its scope may be the invalid ones.
		c.Spec = s.Closed(spec)
		mark(c.Spec.ProtoReflect(), placeholderField, excerpt.Sprintf("%v", err))
		if _, invalid := s.Check(c); invalid == nil {
			return c, true
		}
	}
	return Config{}, false
}

// IsPlaceholder reports whether an object takes the place of one that cannot be read.
func IsPlaceholder(c *Config) bool {
	if c == nil || c.Spec == nil {
		return false
	}
	for unknown := c.Spec.ProtoReflect().GetUnknown(); len(unknown) > 0; {
		number, _, size := protowire.ConsumeField(unknown)
		if number == placeholderField || size < 0 {
			return size >= 0
		}
		unknown = unknown[size:]
	}
	return false
}
