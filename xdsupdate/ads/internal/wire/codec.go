// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"google.golang.org/grpc/encoding"
	grpcproto "google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Codec returns gRPC's codec of protocol buffers with one difference: a large response is sent from
// the bytes that were encoded for all clients, while gRPC's codec copies them for each client.
func Codec() encoding.CodecV2 { return codec{encoding.GetCodecV2(grpcproto.Name)} }

// LargeResponse is the size in bytes of the smallest large response. It is HTTP/2's default flow
// control window, so that smaller responses are written at once.
const LargeResponse = 64 << 10

type codec struct{ encoding.CodecV2 }

// Marshal returns the unknown fields of a message, which are the resources of a response, as a
// buffer of their own. The order of fields has no meaning in protobuf.
func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	m, ok := v.(proto.Message)
	if !ok {
		return c.CodecV2.Marshal(v)
	}
	whole := m.ProtoReflect()
	unknown := whole.GetUnknown()
	if len(unknown) < LargeResponse {
		return c.CodecV2.Marshal(v)
	}
	known := whole.New()
	whole.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		known.Set(field, value)
		return true
	})
	data, err := c.CodecV2.Marshal(known.Interface())
	if err != nil {
		return nil, err
	}
	return append(data, mem.SliceBuffer(unknown)), nil
}
