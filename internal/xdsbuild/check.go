// SPDX-License-Identifier: Apache-2.0

package xdsbuild

import (
	"google.golang.org/protobuf/proto"

	"github.com/pilotkit/pilotkit/internal/envoycheck"
	"github.com/pilotkit/pilotkit/internal/guard"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// Check returns an error if clients of a kind would reject m, which is a resource, or a part of one
// such as a route or a filter chain. These are errors: m, or a message packed into it, fails its
// generated validation (ValidateAll); m breaks another known rule of Envoy or of one of the gRPC
// clients; m cannot be encoded because a text is not UTF-8. Of a virtual host, Check looks only at
// the name and the domains. Nil means that no reason is known; it does not prove that clients
// accept m.
//
// A client that rejects a part rejects the whole resource. Therefore code that puts parts of
// several owners into one resource should check each part separately.
func Check(c envoy.Client, m proto.Message) error {
	if _, err := (proto.MarshalOptions{}).Marshal(m); err != nil {
		return err
	}
	if c == envoy.ForGRPC {
		return envoycheck.GRPC(m)
	}
	return envoycheck.Envoy(m)
}

// Try calls a function that builds a part of a resource for clients of a kind. It returns the part
// and the result of Check, or the panic of the function as an error. A nil part is not an error.
func Try[M proto.Message](c envoy.Client, build func() M) (part M, err error) {
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
