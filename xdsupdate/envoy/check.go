// SPDX-License-Identifier: Apache-2.0

package envoy

import (
	"google.golang.org/protobuf/proto"

	"github.com/pilotkit/pilotkit/internal/guard"
	"github.com/pilotkit/pilotkit/internal/xdscheck"
)

// Check returns why clients of a kind would refuse a resource, or a part of one such as
// a route or a filter chain, whatever it is a part of: it does not pass its generated
// validation (ValidateAll), that of what is packed into it included, it breaks another
// rule that Envoy, or one of the gRPC clients, is known to have, or it has text that is
// not UTF-8 and cannot be encoded. Of a virtual host only the name and the domains
// are looked at. Nil: this package knows no reason, which is no proof.
//
// A client that refuses a part refuses the whole resource. So whoever puts parts of
// several owners into one resource checks each part by itself.
func Check(c Client, m proto.Message) error {
	if _, err := (proto.MarshalOptions{}).Marshal(m); err != nil {
		return err
	}
	if c == ForGRPC {
		return xdscheck.GRPC(m)
	}
	return xdscheck.Envoy(m)
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
