// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"google.golang.org/grpc/encoding"
	grpcproto "google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Codec returns gRPC's codec of protocol buffers with one difference: a large response is
// sent as it was encoded for all clients, where gRPC's makes a copy for each of them.
func Codec() encoding.CodecV2 { return codec{encoding.GetCodecV2(grpcproto.Name)} }

// LargeResponse is from how many bytes on a response is large: HTTP/2 lets no more be in
// flight by default, so that what is smaller is written in one go.
const LargeResponse = 64 << 10

type codec struct{ encoding.CodecV2 }

// Marshal returns the unknown fields of a message, which the resources of a response
// are, as a buffer of their own. In protobuf the order of fields is of no meaning.
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
