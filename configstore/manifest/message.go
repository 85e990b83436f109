// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/pilotkit/pilotkit/configstore"
)

// message reads a mapping into an empty message, by the rules of protobuf's
// JSON mapping.
func (d *decoder) message(n *yaml.Node, m protoreflect.Message) {
	if wellKnown(m.Descriptor()) {
		d.wellKnown(n, m)
		return
	}
	target := d.object(n)
	if target == nil {
		return
	}
	fields := m.Descriptor().Fields()
	start := d.wrong
	entries := d.entries(target)
	ambiguous := d.wrong > start // about the fields, if one is given twice
	for _, e := range entries {
		fd := fields.ByJSONName(e.key)
		if fd == nil {
			fd = fields.ByTextName(e.key)
		}
		if fd == nil {
			if !d.lenient {
				d.fieldErrorf(e.keyNode, e.key, "unknown field")
			}
			d.unread(m, e.key)
			continue
		}
		before := d.wrong
		d.pushField(e.key)
		d.field(e, fd, m)
		d.pop()
		if ambiguous || d.wrong > before {
			d.unread(m, fd.JSONName())
		}
	}
}

// unread notes that a field of a message of the spec cannot be read.
func (d *decoder) unread(m protoreflect.Message, name string) {
	if d.path[0].name == fieldSpec {
		configstore.MarkUnread(m, name)
	}
}

// object returns the mapping that n is or stands for, or nil and a problem.
func (d *decoder) object(n *yaml.Node) *yaml.Node {
	target := follow(n)
	if target.Kind != yaml.MappingNode {
		d.errorf(n, "must be an object, is %s", describe(n))
		return nil
	}
	return target
}

// list returns the sequence that n is or stands for, or nil and a problem.
func (d *decoder) list(n *yaml.Node) *yaml.Node {
	target := follow(n)
	if target.Kind != yaml.SequenceNode {
		d.errorf(n, "must be a list, is %s", describe(n))
		return nil
	}
	return target
}

// describe returns the type of a node for error messages.
func describe(n *yaml.Node) string {
	s, err := resolve(n)
	if err != nil {
		return "a scalar"
	}
	return s.describe()
}

// value returns the value of a node, or false and a problem. It may be no scalar.
func (d *decoder) value(n *yaml.Node) (scalar, bool) {
	s, err := resolve(n)
	if err != nil {
		d.errorf(n, "%s", err)
	}
	return s, err == nil
}

// field reads one field of a message. Null means that it is not set.
func (d *decoder) field(e entry, fd protoreflect.FieldDescriptor, m protoreflect.Message) {
	if isNull(e.value) && !takesNull(fd) {
		return
	}
	if m.Has(fd) {
		d.errorf(e.keyNode, "is given twice, as %s and as %s", fd.JSONName(), fd.TextName())
		return
	}
	if oneof := fd.ContainingOneof(); oneof != nil && !oneof.IsSynthetic() {
		if other := m.WhichOneof(oneof); other != nil {
			d.errorf(e.keyNode, "cannot be given together with %s", other.JSONName())
			return
		}
	}
	switch {
	case fd.IsList():
		d.repeated(e.value, fd, m)
	case fd.IsMap():
		d.entriesOf(e.value, fd, m)
	default:
		if v, ok := d.singular(e.value, fd, m.NewField(fd)); ok {
			m.Set(fd, v)
		}
	}
}

// takesNull reports whether null is a value of the field.
func takesNull(fd protoreflect.FieldDescriptor) bool {
	switch {
	case fd.IsList() || fd.IsMap():
		return false
	case fd.Message() != nil:
		return fd.Message().FullName() == "google.protobuf.Value"
	default:
		return fd.Enum() != nil && fd.Enum().FullName() == "google.protobuf.NullValue"
	}
}

// singular reads a value that is neither a list nor a map. empty is the message
// to fill, if it is one.
func (d *decoder) singular(n *yaml.Node, fd protoreflect.FieldDescriptor, empty protoreflect.Value) (protoreflect.Value, bool) {
	if fd.Message() != nil {
		d.message(n, empty.Message())
		return empty, true
	}
	return d.scalar(n, fd)
}

func (d *decoder) repeated(n *yaml.Node, fd protoreflect.FieldDescriptor, m protoreflect.Message) {
	sequence := d.list(n)
	if sequence == nil || len(sequence.Content) == 0 {
		return
	}
	list := m.Mutable(fd).List()
	for i, item := range sequence.Content {
		d.pushIndex(i)
		var empty protoreflect.Value
		if fd.Message() != nil {
			empty = list.NewElement()
		}
		if v, ok := d.singular(item, fd, empty); ok {
			list.Append(v)
		}
		d.pop()
	}
}

func (d *decoder) entriesOf(n *yaml.Node, fd protoreflect.FieldDescriptor, m protoreflect.Message) {
	mapping := d.object(n)
	if mapping == nil {
		return
	}
	// An empty map is not the same as none: a validator may want to see it.
	values := m.Mutable(fd).Map()
	for _, e := range d.entries(mapping) {
		d.pushKey(e.key)
		var empty protoreflect.Value
		if fd.MapValue().Message() != nil {
			empty = values.NewValue()
		}
		key, err := parseScalar(scalar{text: e.key}, fd.MapKey(), true)
		if err != nil {
			d.errorf(e.keyNode, "has a key that %s", err)
		} else if values.Has(key.MapKey()) {
			d.errorf(e.keyNode, "is given twice")
		} else if isNull(e.value) && isPortMode(fd.MapValue()) {
			values.Set(key.MapKey(), empty)
		} else if v, ok := d.singular(e.value, fd.MapValue(), empty); ok {
			values.Set(key.MapKey(), v)
		}
		d.pop()
	}
}

// isPortMode reports whether a value is the mode of a port in a PeerAuthentication, which API servers and
// Istio take for one that says nothing if it is null.
func isPortMode(fd protoreflect.FieldDescriptor) bool {
	return fd.Message() != nil && fd.Message().FullName() == "istio.security.v1beta1.PeerAuthentication.MutualTLS"
}

// scalar reads a scalar field.
func (d *decoder) scalar(n *yaml.Node, fd protoreflect.FieldDescriptor) (protoreflect.Value, bool) {
	s, ok := d.value(n)
	if !ok {
		return protoreflect.Value{}, false
	}
	v, err := parseScalar(s, fd, false)
	if err != nil {
		d.errorf(n, "%s", err)
	}
	return v, err == nil
}
