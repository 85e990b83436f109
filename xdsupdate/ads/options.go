// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"context"
	"log/slog"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// Options for New. The zero value works.
type Options struct {
	// Logger gets messages about problems that an operator can fix, such as endpoints and ports
	// that are left out because Envoy would reject others with them, and registries that have
	// services but never call the server (CheckRegistries returns them). A nil Logger discards all
	// messages.
	Logger *slog.Logger
	// Observer receives the events of the server; it may be nil.
	Observer Observer
	// Debounce decides how long changes wait for others, to be pushed with them.
	Debounce xdsupdate.Debounce
	// Providers make resources on demand, in addition to those of services and in place of them:
	// the first one that has an answer for a name counts. Their names must be different, or New
	// panics. A client can subscribe to Limits.Types types on a stream, including the types of
	// services.
	Providers []Provider
	// Proxy returns the identity of a client. An error ends the client's stream, with the error's
	// status, before any response. The namespace decides which services the client may see, so a
	// program that does not trust nodes authenticates the peer, which ctx has, and derives the
	// identity from the peer, as package authn does. It is called for the first request of each
	// stream, and for ProxyUpdate, on any goroutine, with no lock held. The default is ProxyOf; if
	// the registries know the workload at the proxy's address, their labels replace the node's.
	Proxy func(ctx context.Context, node *core.Node) (*registry.Proxy, error)
	// PhaseTimeout is how long resources wait for the answer to a response: routes for the clusters
	// that they reference and for stricter listeners, removals for the listeners and routes that do
	// without the removed resources. Then they are sent regardless, and Observer.Overdue is called.
	// Default 15 s, within which an Envoy stops waiting for the warming of its new clusters
	// (initial_fetch_timeout). If it is negative, resources never wait.
	PhaseTimeout time.Duration
	// RemovalDelay is how long a cluster stays with a client after listeners have stopped sending
	// connections there. An Envoy keeps open connections when their cluster is removed; other
	// clients may not. WaitApplied does not wait for the delay. Default 0: the cluster is removed
	// as soon as the client has accepted the listeners.
	RemovalDelay time.Duration
	// Limits bound the requests of clients; the zero value has defaults.
	Limits Limits
	// LargeResponses is the number of responses of more than 64 KiB that may be in flight at a
	// time, each until its client has answered, so that changes for other clients are not behind
	// hundreds of them. Others wait in the order of their arrival. For each client that does not
	// answer within 50 ms one more may be in flight, up to 32 times as many, until clients answer
	// again. Default GOMAXPROCS; a negative number means no bound.
	LargeResponses int
}

const defaultPhaseTimeout = 15 * time.Second
