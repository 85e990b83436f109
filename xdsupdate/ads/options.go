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

// ServiceOptions are choices of the provider of services, which New always has. The
// zero value works.
type ServiceOptions struct {
	// Customizers change the resources of services, in their order.
	Customizers []Customizer
}

// Options for New. The zero value works.
type Options struct {
	// Logger gets what an operator can fix, such as endpoints and ports that are left
	// out because Envoy would refuse others with them, and registries that show
	// services but never call the server (CheckRegistries returns them); nil discards.
	Logger *slog.Logger
	// Observer sees what the server does; nil: nothing is observed.
	Observer Observer
	// Pusher says how changes are debounced: see there for the defaults. Its
	// Prepare, Capture, Whole and ProxyUpdate are the server's own.
	Pusher xdsupdate.PusherOptions
	// Generators add or replace resources; nil: there are only those of providers. Their names
	// must be different, or New panics. A client can subscribe to Limits.Types types
	// on a stream, those of services included.
	Generators []Generator
	// Providers make resources on demand, besides those of services and in place of
	// them: the first one that has an answer for a name counts. Their names must be
	// different, or New panics.
	Providers []Provider
	// Services says what is made of the services of the discovery.
	Services ServiceOptions
	// Configs returns the configs that generators read, as they are when a push
	// begins: a memory store's Snapshot, for instance. Batches of the registries wait
	// while it is called, so it should cost next to nothing. Who asks for a push when they
	// change is an xdsupdate.ConfigHandler for their kinds. Nil: there are none.
	Configs func() ConfigReader
	// Proxy returns the identity of a client; an error ends its stream before anything was
	// sent, with the error's status. The namespace decides which services the client
	// may see, so a program that does not trust what nodes say authenticates the peer,
	// whom ctx has, and answers from that, as package authn does. It is called for the first request of
	// each stream, and for ProxyUpdate, on any goroutine, with no lock held. Nil:
	// ProxyOf, with the labels that the registries have for the workload at the
	// proxy's address in place of those that the node says, if they know it.
	Proxy func(ctx context.Context, node *core.Node) (*registry.Proxy, error)
	// Group returns the program's part of a proxy's view, which must be comparable:
	// proxies of different groups are served by generators and customizers in
	// different ways. It is called after Proxy. Nil: views have no groups.
	Group func(node *core.Node, proxy *registry.Proxy) any
	// PhaseTimeout is how long what depends on a response waits for its answer: routes for
	// the clusters that they name and for listeners that are to refuse more, removals for
	// listeners and routes that do without what goes. Then it is sent all the same, and
	// Observer.Overdue is called. Default 15 s, in which an Envoy ends the waiting of its new
	// clusters by itself (initial_fetch_timeout); negative: nothing waits.
	PhaseTimeout time.Duration
	// RemovalDelay is how long a cluster stays with a client of which listeners have sent
	// connections there and do not any more: an Envoy keeps connections that are open when
	// their cluster goes, other clients may not. WaitApplied does not wait for that. Default
	// 0: it goes as soon as the client has accepted the listeners.
	RemovalDelay time.Duration
	// Limits bound what clients can ask for; the zero value has defaults.
	Limits Limits
	// LargeResponses is how many responses of more than 64 KiB may be on their way at
	// a time, so that changes for other clients are not behind hundreds of them; each
	// until its client has answered. Others wait, the first to come is the first to be
	// sent. For each client that does not answer within 50 ms one more may be on its
	// way, up to 32 times as many, until clients answer again. Default GOMAXPROCS;
	// negative: no bound.
	LargeResponses int
}

const defaultPhaseTimeout = 15 * time.Second
