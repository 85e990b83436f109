// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"iter"
	"slices"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/services"
)

// PushContext is the input of one push: services, endpoints and configs (Root) of one moment, the same for
// all providers and views. It is immutable and costs next to nothing; a reference to it keeps the
// state of that moment in memory.
type PushContext struct {
	// Request is the request of the push; its keys tell a provider what may have changed.
	Request *xdsupdate.PushRequest
	moment  *moment
	table   *services.Table
	sorted  func() []*registry.Service
	changed []ChangedHost
}

// ChangedHost is a host that has changed with a push.
type ChangedHost struct {
	Hostname registry.Hostname
	// EndpointsOnly means that its services are the same.
	EndpointsOnly bool
}

// Root returns the root of the push.
func (p *PushContext) Root() *xdsupdate.Root { return p.moment.root }

// ChangedHosts returns the hosts whose services or endpoints differ from those of the previous
// push. It must not be modified.
func (p *PushContext) ChangedHosts() []ChangedHost { return p.changed }

// ServicesNamed returns all services of a host name, visible or not, sorted by ComparePrecedence,
// or nil if there are none.
func (p *PushContext) ServicesNamed(hostname registry.Hostname) []*registry.Service {
	return p.table.ServicesNamed(hostname)
}

// Services yields all services, visible or not, sorted by CompareServices. The first call in a push
// sorts them.
func (p *PushContext) Services() iter.Seq[*registry.Service] {
	return slices.Values(p.sorted())
}

// ServicesOf returns the services of a host name that proxies of a view see: the services of their
// own namespace, or else of the oldest visible definition; nil if there are none.
func (p *PushContext) ServicesOf(view View, hostname registry.Hostname) []*registry.Service {
	return p.table.ServicesSeen(view.ofServices(), hostname)
}

// Endpoints returns the endpoints of a service, or nil if there are none.
func (p *PushContext) Endpoints(hostname registry.Hostname, namespace string) *xdsupdate.ServiceEndpoints {
	return p.table.Endpoints(hostname, namespace)
}

// moment is the captured input of a push. It is immutable. All responses are derived from it while
// the registries go on.
type moment struct {
	services  services.Reader
	endpoints *xdsupdate.EndpointSnapshot
	own       resourcesByType
	root      *xdsupdate.Root
}

// capture captures the input of a push; it is the Pusher's Capture.
func (s *Server) capture(req *xdsupdate.PushRequest, root *xdsupdate.Root) (exact bool) {
	m := &moment{root: root, endpoints: root.Endpoints(), own: s.own.capture()}
	full := req.Full || req.Everything() || !s.built
	exact = true
	if full || s.services.HasSnapshots() {
		m.services, exact = s.services.Read(root)
	}
	s.moment = m
	return exact
}
