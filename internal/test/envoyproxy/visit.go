// SPDX-License-Identifier: Apache-2.0

package envoyproxy

import (
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/anypb"
)

// visit calls a function with a message and all messages in it, including those packed into an Any,
// and with the name of the field that contains each. The function may change the message.
func visit(m protoreflect.Message, field string, call func(field string, m proto.Message)) error {
	if packed, ok := m.Interface().(*anypb.Any); ok {
		return unpack(packed, func(m proto.Message) error { return visit(m.ProtoReflect(), field, call) })
	}
	call(field, m.Interface())
	var err error
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		name := string(f.Name())
		switch {
		case f.IsMap():
			if f.MapValue().Message() == nil {
				return true
			}
			v.Map().Range(func(_ protoreflect.MapKey, v protoreflect.Value) bool {
				err = visit(v.Message(), name, call)
				return err == nil
			})
		case f.Message() == nil:
		case f.IsList():
			for i := 0; i < v.List().Len() && err == nil; i++ {
				err = visit(v.List().Get(i).Message(), name, call)
			}
		default:
			err = visit(v.Message(), name, call)
		}
		return err == nil
	})
	return err
}
