// SPDX-License-Identifier: Apache-2.0

package envoy

import (
	"fmt"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/pilotkit/pilotkit/internal/guard"
)

// Check returns why clients of a kind would refuse a resource, or a part of one such as
// a route or a filter chain, whatever it is a part of: it does not pass its generated
// validation (ValidateAll), which Envoys apply to what is packed into it, too, or it
// has text that is not UTF-8 and cannot be encoded. Nil: this package knows no reason,
// which is no proof.
//
// A client that refuses a part refuses the whole resource. So whoever puts parts of
// several owners into one resource checks each part by itself.
func Check(c Client, m proto.Message) error {
	if err := valid(m); err != nil {
		return err
	}
	if _, err := (proto.MarshalOptions{}).Marshal(m); err != nil {
		return err
	}
	if c == ForGRPC {
		return nil
	}
	return checkPacked(m.ProtoReflect())
}

func valid(m proto.Message) error {
	if v, ok := m.(interface{ ValidateAll() error }); ok {
		return v.ValidateAll()
	}
	return nil
}

// checkPacked checks what is packed into the fields of a message, at any depth.
func checkPacked(m protoreflect.Message) (err error) {
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.IsMap() && f.MapValue().Message() != nil:
			v.Map().Range(func(_ protoreflect.MapKey, v protoreflect.Value) bool {
				err = checkInside(v.Message())
				return err == nil
			})
		case f.IsMap() || f.Message() == nil:
		case f.IsList():
			for i := 0; i < v.List().Len() && err == nil; i++ {
				err = checkInside(v.List().Get(i).Message())
			}
		default:
			err = checkInside(v.Message())
		}
		return err == nil
	})
	return err
}

func checkInside(m protoreflect.Message) error {
	packed, ok := m.Interface().(*anypb.Any)
	if !ok {
		return checkPacked(m)
	}
	inner, err := packed.UnmarshalNew()
	if err != nil {
		return fmt.Errorf("%s: %w", packed.GetTypeUrl(), err)
	}
	if err := valid(inner); err != nil {
		return err
	}
	return checkPacked(inner.ProtoReflect())
}

// Try calls a function that builds a part of a resource for clients of a kind, and
// returns what Check says of it, or a panic of the function, as an error. A part that the function returns as
// nil is no mistake.
func Try[M proto.Message](c Client, build func() M) (part M, err error) {
	panicked := guard.Call(func() {
		if part = build(); part.ProtoReflect().IsValid() {
			err = Check(c, part)
		}
	})
	if panicked != nil {
		return *new(M), panicked
	}
	return part, err
}
