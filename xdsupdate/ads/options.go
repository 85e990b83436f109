// SPDX-License-Identifier: Apache-2.0

package ads

import (
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
	// Proxy tells who a node is. Its namespace decides which services the client
	// may see, so a host that does not trust its clients authenticates them and
	// answers from that. It is called once for each stream, and again for
	// ProxyUpdate. Nil: ProxyOf.
	Proxy func(node *core.Node) *registry.Proxy
}
