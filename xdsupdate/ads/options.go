// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"context"
	"log/slog"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// Options for New. The zero value works.
type Options struct {
	// Logger gets what an operator can fix; nil discards.
	Logger *slog.Logger
	// Pusher says how changes are debounced: see there for the defaults. Its
	// ProxyUpdate is the server's own.
	Pusher xdsupdate.PusherOptions
	// Generators add or replace resources, by type URL; nil: only the built-in
	// ones. A client can subscribe to ten types on a stream at most, the built-in
	// ones included.
	Generators map[string]Generator
	// Proxy tells who a client is; an error ends its stream. The namespace
	// decides which services the client may see, so a host that does not trust
	// what nodes say authenticates the peer, whom ctx has, and answers from that.
	// It is called for the first request of each stream, and for ProxyUpdate, on
	// any goroutine, with no lock held. Nil: ProxyOf.
	Proxy func(ctx context.Context, node *core.Node) (*registry.Proxy, error)
}
