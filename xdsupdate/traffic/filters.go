// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"errors"
	"slices"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/proto"

	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// filters are what policies put in front of filter chains, of which each has the same. They are immutable.
type filters[F proto.Message] struct {
	list []F
	// bytes are those of all, encoded.
	bytes int
	// refused is why they cannot be sent; nil: they can.
	refused error
}

// newFilters returns filters, and why they cannot be sent: because they are refused, or cannot be encoded.
func newFilters[F proto.Message](list []F, refused error) filters[F] {
	out := filters[F]{list: list, refused: refused}
	for _, f := range list {
		encoded, err := proto.Marshal(f)
		out.bytes, out.refused = out.bytes+len(encoded), errors.Join(out.refused, err)
	}
	return out
}

// before returns a filter chain that is built with filters, nil for none, or why it cannot be sent. It is checked without
// them: they are the same in all chains and have been checked.
func (x filters[F]) before(build func(filters []F) *listenerv3.FilterChain) (*listenerv3.FilterChain, error) {
	c, err := envoy.Try(envoy.ForEnvoy, func() *listenerv3.FilterChain { return build(nil) })
	switch {
	case c == nil || err != nil:
		return nil, err
	case x.refused != nil:
		return nil, x.refused
	case len(x.list) == 0:
		return c, nil
	default:
		return build(x.list), nil
	}
}

// takesRequests reports whether a filter chain serves requests, and not connections of which none is known.
func takesRequests(c *listenerv3.FilterChain) bool {
	return slices.ContainsFunc(c.GetFilters(), func(f *listenerv3.Filter) bool {
		return f.GetTypedConfig().MessageIs(&hcm.HttpConnectionManager{})
	})
}
