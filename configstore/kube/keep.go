// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"encoding/json"
	"slices"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/anypb"
)

// rewrite returns the text of next, extended by the fields of the stored text that the schema does
// not know, as the package comment describes. old is the decoded stored text, or nil if it cannot
// be decoded.
func rewrite(stored json.RawMessage, old, next proto.Message) (json.RawMessage, error) {
	text, err := protojson.Marshal(next)
	if err != nil || isNull(stored) {
		return text, err
	}
	var known protoreflect.Message
	if old != nil {
		known = old.ProtoReflect()
	}
	return keepMessage(stored, text, known, next.ProtoReflect()), nil
}

// keepMessage returns text, the JSON of the message next, extended by the unknown fields of stored.
// old is the decoded stored, or nil if it cannot be decoded.
func keepMessage(stored, text json.RawMessage, old, next protoreflect.Message) json.RawMessage {
	if next.Descriptor().FullName() == "google.protobuf.Any" {
		return keepAny(stored, text, next)
	}
	before, fields := map[string]json.RawMessage{}, map[string]json.RawMessage{}
	if hasOwnSpelling(next.Descriptor()) || json.Unmarshal(stored, &before) != nil || json.Unmarshal(text, &fields) != nil {
		return text // no unknown fields, or not an object
	}
	for name, value := range before {
		fd := fieldOf(next.Descriptor(), name)
		switch {
		case fd == nil:
			fields[name] = value
		case next.Has(fd):
			fields[fd.JSONName()] = keepField(fd, value, fields[fd.JSONName()], valueOf(old, fd), next.Get(fd))
		case isUnknownEnum(fd, value) && !isOtherOfOneof(fd, next):
			fields[fd.JSONName()] = value
		}
	}
	return marshalled(fields)
}

// fieldOf returns the field of a name in JSON, or nil.
func fieldOf(md protoreflect.MessageDescriptor, name string) protoreflect.FieldDescriptor {
	if fd := md.Fields().ByJSONName(name); fd != nil {
		return fd
	}
	return md.Fields().ByTextName(name)
}

// valueOf returns a field of a message, or the zero Value if the message is nil or the field is
// unset.
func valueOf(m protoreflect.Message, fd protoreflect.FieldDescriptor) protoreflect.Value {
	if m == nil || !m.Has(fd) {
		return protoreflect.Value{}
	}
	return m.Get(fd)
}

func messageOf(v protoreflect.Value) protoreflect.Message {
	if !v.IsValid() {
		return nil
	}
	return v.Message()
}

// keepField is keepMessage for a field that is set.
func keepField(fd protoreflect.FieldDescriptor, stored, text json.RawMessage, old, next protoreflect.Value) json.RawMessage {
	switch {
	case fd.IsMap():
		if fd.MapValue().Message() == nil {
			return text
		}
		return keepMap(stored, text, old, next.Map())
	case fd.Message() == nil:
		return text
	case fd.IsList():
		return keepList(stored, text, old, next.List())
	default:
		return keepMessage(stored, text, messageOf(old), next.Message())
	}
}

// keepMap is keepMessage for the messages of a map under the same key.
func keepMap(stored, text json.RawMessage, old protoreflect.Value, next protoreflect.Map) json.RawMessage {
	var before, values map[string]json.RawMessage
	if json.Unmarshal(stored, &before) != nil || json.Unmarshal(text, &values) != nil {
		return text
	}
	next.Range(func(key protoreflect.MapKey, value protoreflect.Value) bool {
		if was, ok := before[key.String()]; ok {
			var known protoreflect.Value
			if old.IsValid() {
				known = old.Map().Get(key)
			}
			values[key.String()] = keepMessage(was, values[key.String()], messageOf(known), value.Message())
		}
		return true
	})
	return marshalled(values)
}

// keepList is keepMessage for the matching messages of a list.
func keepList(stored, text json.RawMessage, old protoreflect.Value, next protoreflect.List) json.RawMessage {
	var before, items []json.RawMessage
	if json.Unmarshal(stored, &before) != nil || json.Unmarshal(text, &items) != nil {
		return text
	}
	known := make([]protoreflect.Message, len(before))
	for i := range known {
		if old.IsValid() && old.List().Len() == len(before) {
			known[i] = old.List().Get(i).Message()
		} else if item := next.NewElement().Message(); (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(before[i], item.Interface()) == nil {
			known[i] = item // The list as a whole cannot be decoded, but this element can.
		}
	}
	wanted := make([]protoreflect.Message, len(items))
	for i := range wanted {
		wanted[i] = next.Get(i).Message()
	}
	for i, j := range matchItems(known, wanted) {
		if j >= 0 {
			items[i] = keepMessage(before[j], items[i], known[j], wanted[i])
		}
	}
	return marshalled(items)
}

// keepAny is keepMessage for the message in an Any whose type stays.
func keepAny(stored, text json.RawMessage, next protoreflect.Message) json.RawMessage {
	var before, after struct {
		Type string `json:"@type"`
	}
	wrapped, ok := next.Interface().(*anypb.Any)
	if !ok || json.Unmarshal(stored, &before) != nil || json.Unmarshal(text, &after) != nil || before.Type != after.Type {
		return text
	}
	inner, err := wrapped.UnmarshalNew()
	if err != nil {
		return text
	}
	return keepMessage(stored, text, nil, inner.ProtoReflect()) // @type is one of the unknown fields.
}

// isUnknownEnum reports whether a text is an enum value that the schema does not know.
func isUnknownEnum(fd protoreflect.FieldDescriptor, text json.RawMessage) bool {
	if fd.Enum() == nil || fd.IsList() || fd.IsMap() {
		return false
	}
	var name string
	return json.Unmarshal(text, &name) == nil && name != "" && fd.Enum().Values().ByName(protoreflect.Name(name)) == nil
}

// isOtherOfOneof reports whether a field belongs to a oneof that has another field set.
func isOtherOfOneof(fd protoreflect.FieldDescriptor, m protoreflect.Message) bool {
	oneof := fd.ContainingOneof()
	return oneof != nil && m.WhichOneof(oneof) != nil
}

// hasOwnSpelling reports whether a message has a special JSON form, which has no unknown fields.
func hasOwnSpelling(md protoreflect.MessageDescriptor) bool {
	return md.FullName().Parent() == "google.protobuf" && slices.Contains([]protoreflect.Name{
		"Struct", "Value", "ListValue", "Duration", "Timestamp", "FieldMask",
		"BoolValue", "Int32Value", "Int64Value", "UInt32Value", "UInt64Value", "FloatValue", "DoubleValue", "StringValue", "BytesValue",
	}, md.Name())
}

// marshalled returns the text of parts that are JSON already.
func marshalled(parts any) json.RawMessage {
	data, _ := json.Marshal(parts) //nolint:errchkjson // They were unmarshalled.
	return data
}
