// SPDX-License-Identifier: Apache-2.0

package route

import (
	"cmp"
	"slices"
	"strconv"
	"sync"

	"github.com/pilotkit/pilotkit/internal/pmap"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// The types of resources that decide about requests.
const (
	listenerType   = envoy.ListenerType
	routeType      = envoy.RouteType
	clusterType    = envoy.ClusterType
	assignmentType = envoy.LoadAssignmentType
)

// Kind is the kind of the proxy of a Router.
type Kind uint8

const (
	// Gateway is a proxy that Gateways select. Requests come to its listeners.
	Gateway Kind = iota
	// Workload is a client workload with a sidecar. Its requests are decided by the routes of the
	// port that they are for; its listeners are the host's.
	Workload
	// GRPC is a gRPC client. The authority of a request is the target, "HOST:PORT".
	GRPC
)

// Router decides about the requests of one proxy in one state. It is immutable, and safe for
// concurrent use without locks: its parts are compiled when they are first needed, and shared with
// the routers of later states (Next).
type Router struct {
	kind      Kind
	resources Resources
	// listeners are the listeners of a gateway by port. A listener on one address comes first.
	listeners map[uint32][]*Listener
	tables    pmap.Map[string, *slot[*Table]]
	clusters  pmap.Map[string, *slot[*Endpoints]]
	// targets and others are listeners and tables of client workloads by name that Names does not
	// yield, because a client asks for them by name. They are for this state alone.
	targets, others sync.Map
}

// New returns the router of a proxy. It costs time for each name. Resources other than listeners
// are not built yet.
func New(kind Kind, resources Resources) *Router {
	return (&Router{kind: kind}).Next(resources, Everything())
}

// Next returns the router for a later state, which differs as changed says. The cost depends on
// the change alone.
func (r *Router) Next(resources Resources, changed Changed) *Router {
	out := &Router{kind: r.kind, resources: resources, listeners: r.listeners, tables: r.tables, clusters: r.clusters}
	if changed.Types[listenerType] || len(changed.Names[listenerType]) > 0 {
		out.listeners = listenersOf(resources)
	}
	next(&out.tables, resources, changed, routeType)
	next(&out.clusters, resources, changed, clusterType)
	for _, name := range changed.Names[assignmentType] {
		if _, ok := out.clusters.Get(name); ok {
			out.clusters = out.clusters.Set(name, &slot[*Endpoints]{})
		}
	}
	if changed.Types[assignmentType] && !changed.Types[clusterType] {
		out.clusters = slots[*Endpoints](resources, clusterType)
	}
	return out
}

// next replaces the slots of resources that may differ.
func next[V any](of *pmap.Map[string, *slot[V]], resources Resources, changed Changed, typeURL string) {
	if changed.Types[typeURL] {
		*of = slots[V](resources, typeURL)
		return
	}
	for _, name := range changed.Names[typeURL] {
		if resources.Has(typeURL, name) {
			*of = of.Set(name, &slot[V]{})
		} else {
			*of = of.Delete(name)
		}
	}
}

// slots returns an empty slot for each name of a type.
func slots[V any](resources Resources, typeURL string) pmap.Map[string, *slot[V]] {
	var entries []*pmap.Entry[string, *slot[V]]
	for name := range resources.Names(typeURL) {
		entries = append(entries, &pmap.Entry[string, *slot[V]]{Key: name, Value: &slot[V]{}})
	}
	return pmap.FromEntries(entries)
}

func listenersOf(resources Resources) map[uint32][]*Listener {
	out := make(map[uint32][]*Listener)
	for name := range resources.Names(listenerType) {
		if l := NewListener(resources.Resource(listenerType, name)); l != nil {
			out[l.Port] = append(out[l.Port], l)
		}
	}
	for _, list := range out {
		slices.SortFunc(list, func(a, b *Listener) int {
			return cmp.Or(compareBool(a.Bind.IsUnspecified(), b.Bind.IsUnspecified()), a.Bind.Compare(b.Bind))
		})
	}
	return out
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	default:
		return -1
	}
}

// Route decides about a request. It never fails: a request that cannot be decided is refused with a
// reason.
// It may be called from any goroutine.
func (r *Router) Route(q Request) Decision {
	var d Decision
	switch r.kind {
	case Workload:
		if t := r.table(strconv.FormatUint(uint64(q.Port), 10)); t != nil && q.Protocol == HTTP {
			d = t.Route(q)
		} else {
			d.Outcome, d.Reason = Closed, NoListener
		}
	case GRPC:
		if l := r.target(q); l != nil {
			d = l.Route(q, r.table)
		} else {
			d.Outcome, d.Reason = Closed, NoListener
		}
	default:
		if l := r.listener(q); l != nil {
			d = l.Route(q, r.table)
		} else {
			d.Outcome, d.Reason = Closed, NoListener
		}
	}
	if to := d.Destination; d.Outcome == Forwarded && to != nil && to.isService() && !r.HasCluster(to.Cluster) {
		d.missingCluster()
	}
	return d
}

// missingCluster makes a decision one about a destination that does not exist.
func (d *Decision) missingCluster() {
	if d.Rule.missing == 0 { // a connection
		d.Outcome, d.Reason = Closed, NoCluster
		return
	}
	d.answer(NoCluster, d.Rule.missing)
}

// listener returns the listener of a gateway for a connection: the one on its destination address,
// or else the one on all addresses.
func (r *Router) listener(q Request) *Listener {
	for _, l := range r.listeners[q.Port] {
		if l.Bind.IsUnspecified() || l.Bind == q.Destination.Unmap() {
			return l
		}
	}
	return nil
}

// target returns the listener of a gRPC client for a target.
func (r *Router) target(q Request) *Listener {
	name := q.Authority
	if _, port := splitPort(name); port == "" && q.Port != 0 {
		name += ":" + strconv.FormatUint(uint64(q.Port), 10)
	}
	name = asciiLower(name)
	return named(&r.targets, name, func() *Listener { return NewListener(r.resources.Resource(listenerType, name)) })
}

// table returns a route configuration, or nil.
func (r *Router) table(name string) *Table {
	build := func() *Table { return NewTable(r.resources.Resource(routeType, name)) }
	if s, ok := r.tables.Get(name); ok {
		return s.get(build)
	}
	if r.kind == Gateway {
		return nil
	}
	return named(&r.others, name, build)
}

// named returns the value of a name, which is built the first time.
func named[V any](values *sync.Map, name string, build func() V) V {
	if v, ok := values.Load(name); ok {
		return v.(V) //nolint:forcetypeassert // the map has no others
	}
	v, _ := values.LoadOrStore(name, build())
	return v.(V) //nolint:forcetypeassert // the map has no others
}

// HasCluster reports whether the proxy has a cluster.
func (r *Router) HasCluster(name string) bool {
	_, ok := r.clusters.Get(name)
	return ok || r.kind == GRPC
}

// Endpoints returns the endpoints of a cluster, or nil if the proxy has no such cluster. The result
// is the same until they change, so that a host can keep the state of its balancer with it.
func (r *Router) Endpoints(cluster string) *Endpoints {
	build := func() *Endpoints {
		return NewEndpoints(cluster, r.resources.Resource(clusterType, cluster).Message, r.resources.Resource(assignmentType, cluster).Message)
	}
	if s, ok := r.clusters.Get(cluster); ok {
		return s.get(build)
	}
	if r.kind != GRPC {
		return nil
	}
	return build()
}
