// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"errors"
	"slices"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/proto"

	"github.com/pilotkit/pilotkit/internal/xdsbuild"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// filters are the filters that policies add to every filter chain. They are immutable.
type filters[F proto.Message] struct {
	list []F
	// bytes is the total encoded size.
	bytes int
	// refused says why the filters cannot be sent. It is nil if they can.
	refused error
}

// newFilters returns filters. They cannot be sent if refused is set or one cannot be encoded.
func newFilters[F proto.Message](list []F, refused error) filters[F] {
	out := filters[F]{list: list, refused: refused}
	for _, f := range list {
		encoded, err := proto.Marshal(f)
		out.bytes, out.refused = out.bytes+len(encoded), errors.Join(out.refused, err)
	}
	return out
}

// before builds a filter chain behind the filters. It returns nil if build returns nil, and an
// error if the chain or the filters cannot be sent. The chain is validated without the filters,
// because these are the same in all chains and already validated.
func (x filters[F]) before(build func(filters []F) *listenerv3.FilterChain) (*listenerv3.FilterChain, error) {
	c, err := xdsbuild.Try(envoy.ForEnvoy, func() *listenerv3.FilterChain { return build(nil) })
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

// takesRequests reports whether a filter chain serves HTTP requests.
func takesRequests(c *listenerv3.FilterChain) bool {
	return slices.ContainsFunc(c.GetFilters(), func(f *listenerv3.Filter) bool {
		return f.GetTypedConfig().MessageIs(&hcm.HttpConnectionManager{})
	})
}
