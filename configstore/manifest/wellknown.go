// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"encoding/json"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"
)

// wellKnown reports whether a message has a JSON spelling of its own.
func wellKnown(md protoreflect.MessageDescriptor) bool {
	if md.FullName().Parent() != "google.protobuf" {
		return false
	}
	switch md.Name() {
	case "Duration", "Struct", "Value", "ListValue", "Any", "Timestamp", "FieldMask", "Empty":
		return true
	}
	return isWrapper(md)
}

func isWrapper(md protoreflect.MessageDescriptor) bool {
	switch md.Name() {
	case "BoolValue", "Int32Value", "Int64Value", "UInt32Value", "UInt64Value", "FloatValue", "DoubleValue",
		"StringValue", "BytesValue":
		return true
	}
	return false
}

func (d *decoder) wellKnown(n *yaml.Node, m protoreflect.Message) {
	md := m.Descriptor()
	switch {
	case isWrapper(md):
		fd := md.Fields().ByName("value")
		if v, ok := d.scalar(n, fd); ok {
			m.Set(fd, v)
		}
	case md.Name() == "Duration":
		d.duration(n, m)
	default:
		d.viaJSON(n, m)
	}
}

// duration takes what time.ParseDuration takes, as the decoder of Istio 1.30
// does, and beyond its range of 292 years the seconds of protobuf's JSON
// mapping.
func (d *decoder) duration(n *yaml.Node, m protoreflect.Message) {
	s, ok := d.value(n)
	if !ok {
		return
	}
	if s.kind == scalarString {
		if parsed, err := time.ParseDuration(s.text); err == nil {
			setDuration(m, durationpb.New(parsed))
			return
		}
		if protojson.Unmarshal(jsonString(s.text), m.Interface()) == nil {
			return
		}
	}
	d.errorf(n, `must be a duration such as "1.5s" or "10m", is %s`, s.describe())
}

// setDuration goes by reflection because m may be a dynamic message.
func setDuration(m protoreflect.Message, v *durationpb.Duration) {
	fields := m.Descriptor().Fields()
	if v.Seconds != 0 {
		m.Set(fields.ByName("seconds"), protoreflect.ValueOfInt64(v.Seconds))
	}
	if v.Nanos != 0 {
		m.Set(fields.ByName("nanos"), protoreflect.ValueOfInt32(v.Nanos))
	}
}

// viaJSON hands a message to protojson.
func (d *decoder) viaJSON(n *yaml.Node, m protoreflect.Message) {
	before := d.wrong
	value := d.jsonOf(n)
	if d.wrong > before {
		return
	}
	data, err := json.Marshal(value)
	if err == nil {
		err = protojson.UnmarshalOptions{DiscardUnknown: d.lenient}.Unmarshal(data, m.Interface())
	}
	if err != nil {
		d.errorf(n, "must be a %s: %s", m.Descriptor().FullName(), cleanProtoError(err))
	}
}

// cleanProtoError drops the prefix, whose blanks are random by intent, and the
// position, which is in a text that the user has never seen.
func cleanProtoError(err error) string {
	message := strings.ReplaceAll(err.Error(), "\u00a0", " ")
	message = strings.TrimPrefix(message, "proto: ")
	message = strings.TrimPrefix(message, "syntax error ")
	if strings.HasPrefix(message, "(line ") {
		if _, rest, ok := strings.Cut(message, "): "); ok {
			return rest
		}
	}
	return message
}
