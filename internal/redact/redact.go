// SPDX-License-Identifier: Apache-2.0

// Package redact removes secrets from xDS resources before they are shown, as Envoy does
// in its own config dump.
package redact

import (
	annotations "github.com/cncf/xds/go/udpa/annotations"
	udpatype "github.com/cncf/xds/go/udpa/type/v1"
	xdstype "github.com/cncf/xds/go/xds/type/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// Mark replaces a secret.
const Mark = "[redacted]"

// Message redacts a message in place: all fields with the option udpa.annotations.sensitive.
// Strings and bytes in them become Mark, all other values are cleared (Envoy: MessageUtil::redact).
// It also redacts packed messages, such as Any and TypedStruct. Packed content that cannot be
// inspected (a type that this process does not have, bytes that do not fit the type, unknown
// fields) is removed, because it may contain secrets; an Any then keeps a StringValue with its type
// name.
func Message(m proto.Message) { message(m.ProtoReflect(), false) }

// message redacts a message, all of it if it is secret.
func message(m protoreflect.Message, secret bool) {
	switch packed := m.Interface().(type) {
	case *anypb.Any:
		inAny(packed, secret)
		return
	case *udpatype.TypedStruct:
		packed.Value = inStruct(packed.GetTypeUrl(), packed.GetValue(), secret)
		return
	case *xdstype.TypedStruct:
		packed.Value = inStruct(packed.GetTypeUrl(), packed.GetValue(), secret)
		return
	}
	m.SetUnknown(nil)
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		field(m, f, v, secret || isSecret(f))
		return true
	})
}

func isSecret(f protoreflect.FieldDescriptor) bool {
	secret, _ := proto.GetExtension(f.Options(), annotations.E_Sensitive).(bool)
	return secret
}

// field redacts a field of a message that has it.
func field(m protoreflect.Message, f protoreflect.FieldDescriptor, v protoreflect.Value, secret bool) {
	element := f
	if f.IsMap() {
		element = f.MapValue()
	}
	mark, isText := markOf(element.Kind())
	switch {
	case element.Message() != nil:
		eachMessage(f, v, func(m protoreflect.Message) { message(m, secret) })
	case !secret:
	case !isText:
		m.Clear(f)
	case f.IsMap():
		v.Map().Range(func(key protoreflect.MapKey, _ protoreflect.Value) bool {
			v.Map().Set(key, mark)
			return true
		})
	case f.IsList():
		for i := range v.List().Len() {
			v.List().Set(i, mark)
		}
	default:
		m.Set(f, mark)
	}
}

// markOf returns the replacement for strings and bytes. ok is false for other kinds.
func markOf(kind protoreflect.Kind) (mark protoreflect.Value, ok bool) {
	switch kind {
	case protoreflect.StringKind:
		return protoreflect.ValueOfString(Mark), true
	case protoreflect.BytesKind:
		return protoreflect.ValueOfBytes([]byte(Mark)), true
	default:
		return mark, false
	}
}

// eachMessage visits the message, or the messages, of a field.
func eachMessage(f protoreflect.FieldDescriptor, v protoreflect.Value, visit func(m protoreflect.Message)) {
	switch {
	case f.IsMap():
		v.Map().Range(func(_ protoreflect.MapKey, v protoreflect.Value) bool {
			visit(v.Message())
			return true
		})
	case f.IsList():
		for i := range v.List().Len() {
			visit(v.List().Get(i).Message())
		}
	default:
		visit(v.Message())
	}
}

// inAny redacts a packed message.
func inAny(packed *anypb.Any, secret bool) {
	if packed.GetTypeUrl() == "" {
		packed.Value = nil
		return
	}
	m, err := packed.UnmarshalNew()
	if err == nil {
		message(m.ProtoReflect(), secret)
		err = anypb.MarshalFrom(packed, m, proto.MarshalOptions{Deterministic: true})
	}
	if err != nil {
		unknown, _ := anypb.New(wrapperspb.String(Mark + ": " + packed.GetTypeUrl() + " cannot be decoded here"))
		packed.TypeUrl, packed.Value = unknown.GetTypeUrl(), unknown.GetValue()
	}
}

// inStruct returns the redacted JSON of a message of a type; nil if that is not known.
func inStruct(typeURL string, value *structpb.Struct, secret bool) *structpb.Struct {
	known, err := protoregistry.GlobalTypes.FindMessageByURL(typeURL)
	if err != nil {
		return nil
	}
	m := known.New().Interface()
	data, err := protojson.Marshal(value)
	if err != nil || (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(data, m) != nil {
		return nil
	}
	message(m.ProtoReflect(), secret)
	out := &structpb.Struct{}
	if data, err = (protojson.MarshalOptions{UseProtoNames: true}).Marshal(m); err != nil || protojson.Unmarshal(data, out) != nil {
		return nil
	}
	return out
}
