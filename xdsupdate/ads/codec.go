// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"google.golang.org/grpc/encoding"
	grpcproto "google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Codec returns gRPC's codec of protocol buffers with one difference: a large
// response of this package is sent as it was encoded for all clients, where gRPC's
// makes a copy for each of them. A program gives it to the gRPC server on which
// it registers:
//
//	server := grpc.NewServer(grpc.ForceServerCodecV2(ads.Codec()))
//
// It is one of ServerOptions.
//
// Without it everything works too; with it a wildcard client of 10,000 clusters costs
// 40 % less processor time when it connects, and 4 MB less memory while it is sent
// them. Interceptors see the same messages, and compression works as ever. Messages of
// other services are encoded as without it.
func Codec() encoding.CodecV2 { return codec{encoding.GetCodecV2(grpcproto.Name)} }

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
	if len(unknown) < largeResponse {
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
