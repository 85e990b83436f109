// SPDX-License-Identifier: Apache-2.0

package mesh

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/pilotkit/pilotkit/internal/ipaddr"
	"github.com/pilotkit/pilotkit/internal/limit"
	"github.com/pilotkit/pilotkit/internal/xdsbuild"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/hostname"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/memo"
)

// Workloads indexes the endpoints of services by namespace and address, for one world. It reuses
// unchanged results of the previous world. Namespaces are indexed on demand.
type Workloads struct {
	world *World
	// before are the lists of earlier worlds. services is set if services have changed since.
	before   map[string][]*serviceWorkloads
	services bool
	lists    memo.Results[string, []*serviceWorkloads]
}

// serviceWorkloads are the endpoints of a service by canonical address. It is immutable.
type serviceWorkloads struct {
	service   *registry.Service
	endpoints *xdsupdate.ServiceEndpoints
	byAddress map[string][]*registry.Endpoint
}

// Workload is an endpoint of a service.
type Workload struct {
	Service  *registry.Service
	Endpoint *registry.Endpoint
}

// NewWorkloads returns the workloads of a world, based on the previous ones, which may be nil. The
// argument services says that services have changed.
func NewWorkloads(before *Workloads, w *World, services bool) *Workloads {
	out := &Workloads{world: w, services: services}
	if before == nil {
		return out
	}
	out.before = before.lists.All()
	for namespace, list := range before.before {
		// Lists that were not requested since then are only valid if services have not changed.
		if _, newer := out.before[namespace]; !newer && !before.services {
			out.before[namespace] = list
		}
	}
	return out
}

// At returns the workloads of a namespace at some canonical addresses, in the order of precedence
// of their services.
func (x *Workloads) At(namespace string, addresses []string) (out []Workload) {
	for _, s := range x.lists.Get(namespace, func() []*serviceWorkloads { return x.in(namespace) }) {
		for _, a := range addresses {
			for _, e := range s.byAddress[a] {
				out = append(out, Workload{s.service, e})
			}
		}
	}
	return out
}

func (x *Workloads) in(namespace string) []*serviceWorkloads {
	before := x.before[namespace]
	known := make(map[*registry.Service]*serviceWorkloads, len(before))
	services := make([]*registry.Service, 0, len(before))
	for _, s := range before {
		known[s.service], services = s, append(services, s.service)
	}
	if before == nil || x.services {
		services = slices.SortedFunc(x.world.In(namespace), registry.ComparePrecedence)
	}
	list := make([]*serviceWorkloads, 0, len(services))
	for _, svc := range services {
		list = append(list, x.of(svc, known[svc]))
	}
	return list
}

// of returns the workloads of a service: those before, which may be nil, if its endpoints are
// unchanged.
func (x *Workloads) of(svc *registry.Service, before *serviceWorkloads) *serviceWorkloads {
	endpoints := x.world.Endpoints(svc)
	if before != nil && before.endpoints == endpoints {
		return before
	}
	out := &serviceWorkloads{service: svc, endpoints: endpoints, byAddress: make(map[string][]*registry.Endpoint)}
	for e := range endpoints.All() {
		for _, a := range e.Addresses {
			a = CanonicalAddress(a)
			out.byAddress[a] = append(out.byAddress[a], e)
		}
	}
	return out
}

// CanonicalAddress is ipaddr.Canonical without parsing IPv4 addresses, which have only one
// spelling.
func CanonicalAddress(address string) string {
	if strings.IndexByte(address, ':') < 0 {
		return address
	}
	return ipaddr.Canonical(address)
}

// Places answers which services have workloads at the addresses of a client. A router listens on
// the target ports of these services, and a gRPC client with a workload may be a server. Only
// services in the client's own namespace count (Istio 1.30), because endpoints with any address can
// be written in any namespace. The answers are kept, and a push that changes one of them regroups
// the clients.
type Places struct {
	// last returns the workloads of the last push, or nil.
	last func() *Workloads

	mu sync.Mutex
	// If too many places were asked about, they are all forgotten, and a regrouping of the connected
	// clients asks again. limit is the number of places that leads to this.
	asked map[clientPlace]Found
	limit int
}

// Place is a canonical address in a namespace.
type Place struct{ Namespace, Address string }

// clientPlace is an address of a router or of a gRPC client.
type clientPlace struct {
	Place
	router bool
}

// leastAsked is the lower bound of limit.
const leastAsked limit.Size = 4096

// Found describes the workloads at the addresses of a client.
type Found struct {
	// Addresses are the addresses in canonical form, sorted.
	Addresses []string
	// Services are the hosts of their services, in lower case, sorted.
	Services []string
	Ports    TargetPorts
}

// NewPlaces returns places that no client has asked about. The function last returns the workloads of
// the last push, or nil before the first.
func NewPlaces(last func() *Workloads) *Places {
	return &Places{last: last, asked: make(map[clientPlace]Found)}
}

// Of returns the workloads at the addresses of a client.
func (x *Places) Of(namespace string, addresses []string, router bool) Found {
	x.mu.Lock()
	defer x.mu.Unlock()
	canonical := make([]string, len(addresses))
	for i, a := range addresses {
		canonical[i] = ipaddr.Canonical(a)
	}
	slices.Sort(canonical)
	out := x.at(namespace, slices.Compact(canonical))
	for _, a := range out.Addresses {
		at := clientPlace{Place{namespace, a}, router}
		x.renew(at)
		if !router {
			out.Services = append(out.Services, x.asked[at].Services...)
		}
	}
	return out
}

// at returns the workloads at canonical addresses.
func (x *Places) at(namespace string, addresses []string) Found {
	out := Found{Addresses: addresses, Ports: make(TargetPorts)}
	last := x.last()
	if last == nil {
		return out
	}
	all := last.At(namespace, addresses)
	slices.SortStableFunc(all, func(a, b Workload) int { // the first host takes precedence
		return cmp.Compare(hostname.Lower(a.Service.Hostname), hostname.Lower(b.Service.Hostname))
	})
	for _, w := range all {
		out.Services = append(out.Services, string(hostname.Lower(w.Service.Hostname)))
		out.Ports.add(w)
	}
	out.Services = slices.Compact(out.Services)
	return out
}

// renew updates the answer about a place, and reports whether clients must be regrouped. A gRPC
// client stays a server when its workload is deleted, so that it keeps its view and learns that its
// listeners are deleted.
func (x *Places) renew(at clientPlace) bool {
	before := x.asked[at]
	if !at.router && len(before.Services) > 0 {
		return false
	}
	now := x.at(at.Namespace, []string{at.Address})
	x.asked[at] = now
	return !slices.Equal(before.Services, now.Services) || at.router && !maps.Equal(before.Ports, now.Ports)
}

// Advance reports whether clients must be regrouped after a push, because the workloads at their
// addresses have changed or because the places are forgotten. The function changed returns the
// places with changes, and a nil function stands for the first push. The workloads of the push must
// already be the last ones.
func (x *Places) Advance(changed func() map[Place]struct{}) (regroup bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.asked) > max(x.limit, leastAsked.Get()) {
		x.limit = 2 * len(x.asked)
		clear(x.asked)
		return true
	}
	if changed == nil {
		for at := range x.asked {
			regroup = x.renew(at) || regroup
		}
		return regroup
	}
	if len(x.asked) == 0 {
		return false
	}
	for place := range changed() {
		for _, router := range []bool{false, true} {
			at := clientPlace{place, router}
			if _, asked := x.asked[at]; asked {
				regroup = x.renew(at) || regroup
			}
		}
	}
	return regroup
}

// Servers reports whether a gRPC client has asked.
func (x *Places) Servers() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	for at := range x.asked {
		if !at.router {
			return true
		}
	}
	return false
}

// ListeningPorts returns the possible listening ports for a port of a Gateway: the port itself and the
// target ports of services.
func (x *Places) ListeningPorts(port uint32) []uint32 {
	x.mu.Lock()
	defer x.mu.Unlock()
	out := []uint32{port}
	for at, there := range x.asked {
		if target := there.Ports[port]; at.router && target != 0 && !slices.Contains(out, target) {
			out = append(out, target)
		}
	}
	return out
}

// TargetPorts maps the ports of services to target ports.
type TargetPorts map[uint32]uint32

// untranslatedLabel, with any value, marks services whose ports are ignored here: their routers
// listen on the ports of Gateways (Istio 1.30).
const untranslatedLabel = "experimental.istio.io/disable-gateway-port-translation"

// add adds the target ports of a workload, except for ports that have one.
func (t TargetPorts) add(w Workload) {
	if _, untranslated := w.Service.Attributes.Labels[untranslatedLabel]; untranslated {
		return
	}
	for _, port := range w.Service.Ports {
		if port == nil || t[port.Number] != 0 || !xdsbuild.Serves(w.Endpoint, port) {
			continue
		}
		t[port.Number] = w.Endpoint.EndpointPort
	}
}

// String returns the ports as "port=target", separated by commas.
func (t TargetPorts) String() string {
	var out []string
	for _, port := range slices.Sorted(maps.Keys(t)) {
		out = append(out, fmt.Sprintf("%d=%d", port, t[port]))
	}
	return strings.Join(out, ",")
}

// ParseTargetPorts parses the result of String. It returns nil if there are none.
func ParseTargetPorts(text string) TargetPorts {
	if text == "" {
		return nil
	}
	out := make(TargetPorts)
	for pair := range strings.SplitSeq(text, ",") {
		port, target, _ := strings.Cut(pair, "=")
		from, _ := strconv.ParseUint(port, 10, 32) // String has written both
		to, _ := strconv.ParseUint(target, 10, 32)
		out[uint32(from)] = uint32(to)
	}
	return out
}

// ChangedPlaces returns the places of workloads that differ between two worlds: those of the changed
// endpoints of some hosts, and of all endpoints of hosts with changed services.
func ChangedPlaces(before, after *World, endpoints, services []registry.Hostname) map[Place]struct{} {
	out := make(map[Place]struct{})
	add := func(svc *registry.Service, endpoints iter.Seq[*registry.Endpoint]) {
		for e := range endpoints {
			for _, a := range e.Addresses {
				out[Place{svc.Attributes.Namespace, CanonicalAddress(a)}] = struct{}{}
			}
		}
	}
	for _, host := range slices.Concat(endpoints, services) {
		for _, svc := range slices.Concat(before.Named(host), after.Named(host)) {
			was, is := before.Endpoints(svc), after.Endpoints(svc)
			add(svc, slices.Values(is.ChangesSince(was)))
			if slices.Contains(services, host) {
				add(svc, was.All())
				add(svc, is.All())
			}
		}
	}
	return out
}
