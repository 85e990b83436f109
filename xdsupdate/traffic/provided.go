// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"errors"
	"iter"
	"maps"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/internal/limit"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/memo"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/mesh"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/objects"
)

// provided is the result of one push. It is immutable except for cached computations.
type provided struct {
	state *state
	// proxies are the proxies that stand for all proxies of a view.
	proxies *memo.Results[ads.View, *proxy]
	// shared counts the pushes that have kept the cached computations.
	shared int
}

// maxShared is the maximum number of consecutive pushes of endpoints that keep the cached
// computations, because these also grow with views that are gone.
const maxShared limit.Size = 256

// take returns the configs that differ between the root of a push and the last provided one, in
// their latest revision. Nil stands for a deleted config.
func (p *Policies) take(push *ads.PushContext) map[configstore.ConfigKey]*configstore.Config {
	if p.configs == nil || !takesConfigs(push) {
		return nil
	}
	return push.Root().ConfigsSince(p.root, p.configs)
}

// takesConfigs reports whether a push takes changed configs. A push of endpoints does not, because
// it has the services and policies of the last full push.
func takesConfigs(push *ads.PushContext) bool { return push.Request.Full || push.Request.Everything() }

// Provide implements ads.Provider.
func (p *Policies) Provide(push *ads.PushContext) (ads.Provided, ads.Changes) {
	next, changes := p.provide(push)
	if takesConfigs(push) {
		p.root = push.Root() // last: what has failed is made again of the last one that has not
	}
	return next, changes
}

func (p *Policies) provide(push *ads.PushContext) (ads.Provided, ads.Changes) {
	last := p.last.Load()
	if last == nil {
		w := mesh.NewWorld(push, &p.settings.Settings)
		configs := p.take(push)
		for key, c := range configs {
			p.settings.keys.follow(key, nil, c)
		}
		next := &provided{state: newState(objects.NewIndex(configs, &p.settings.Settings), w, p.settings), proxies: &memo.Results[ads.View, *proxy]{}}
		p.logClosed(next.state, next.state.Objects.All())
		regroup := p.regroup(next.state.Index)
		p.last.Store(next)
		regroup = p.places.Advance(nil) || regroup
		p.watches.publish(p, next, ads.Changes{}) // the first state
		return next, ads.Changes{Regroup: regroup}
	}
	w := last.state.world.Next(push)
	d := p.difference(push, last.state)
	next := &provided{}
	if d.endpointsOnly() && last.shared < maxShared.Get() {
		next.state, next.proxies, next.shared = last.state.in(w, mesh.NewWorkloads(last.state.workloads, w, false)), last.proxies, last.shared+1
	} else {
		next.state, next.proxies = last.state.next(last.state.WithAll(d.objects), w, d), &memo.Results[ads.View, *proxy]{}
	}
	d.after = next.state
	p.logClosed(next.state, d.now())
	changes := newAffected(d).changes()
	changes.Regroup = p.regroup(next.state.Index)
	p.last.Store(next)
	changes.Regroup = p.places.Advance(d.places) || changes.Regroup
	p.watches.publish(p, next, changes)
	return next, changes
}

// proxy returns the proxy that stands for all proxies of a view.
func (x *provided) proxy(v ads.View) *proxy {
	return x.proxies.Get(v, func() *proxy {
		p := proxyOf(v)
		p.locate(v)
		return p
	})
}

// Names implements ads.Provided.
func (x *provided) Names(v ads.View, typeURL string) (iter.Seq[string], bool) {
	p := x.proxy(v)
	if !serves(typeURL, p) {
		return nil, false
	}
	return func(yield func(string) bool) {
		for _, name := range x.state.names(p, typeURL) {
			if !yield(name) {
				return
			}
		}
	}, true
}

// Covers implements ads.Provided.
func (x *provided) Covers(v ads.View, typeURL, name string) (covered, only bool) {
	p := x.proxy(v)
	if !serves(typeURL, p) {
		return false, false
	}
	return x.state.covers(p, typeURL, name), true
}

// covers reports whether a wildcard subscription covers a name.
func (st *state) covers(p *proxy, typeURL, name string) bool {
	switch typeURL {
	case envoy.ClusterType:
		return st.coversCluster(p, name)
	case envoy.LoadAssignmentType:
		at := st.clusterPlaceOf(p, name)
		return at != nil && st.eds(p, at)
	case envoy.ListenerType:
		return p.Role == objects.Router && st.routerOf(p).listeners[name] != nil
	default:
		_, found := slices.BinarySearch(st.names(p, typeURL), name)
		return found
	}
}

// Lookup implements ads.Provided.
func (x *provided) Lookup(v ads.View, typeURL, name string) ads.Answer {
	p := x.proxy(v)
	if !serves(typeURL, p) {
		return ads.Answer{Next: true}
	}
	return x.answer(v, p, typeURL, name, x.state.placeOf(p, typeURL, name))
}

// List implements ads.Lister.
func (x *provided) List(v ads.View, typeURL string) (iter.Seq2[string, ads.Answer], bool) {
	names, only := x.Names(v, typeURL)
	if !only {
		return nil, false
	}
	if !ofCluster(typeURL) {
		return func(yield func(string, ads.Answer) bool) {
			for name := range names {
				if !yield(name, x.Lookup(v, typeURL, name)) {
					return
				}
			}
		}, true
	}
	p := x.proxy(v)
	return func(yield func(string, ads.Answer) bool) {
		if typeURL == envoy.ClusterType {
			for _, c := range constantClusters(p) {
				if !yield(c.GetName(), x.answer(v, p, typeURL, c.GetName(), nil)) {
					return
				}
			}
		}
		for at := range x.state.clusterPlaces(p) {
			name := at.name()
			a := x.answer(v, p, typeURL, name, &at)
			if typeURL == envoy.LoadAssignmentType && !a.Next && !x.state.eds(p, &at) {
				continue
			}
			if !yield(name, a) {
				return
			}
		}
	}, true
}

// ofCluster reports whether a type has a resource for each cluster.
func ofCluster(typeURL string) bool {
	return typeURL == envoy.ClusterType || typeURL == envoy.LoadAssignmentType
}

// answer is Lookup for a name with its place, which is nil for names that are not of a cluster.
func (x *provided) answer(v ads.View, p *proxy, typeURL, name string, at *clusterPlace) ads.Answer {
	if typeURL == envoy.LoadAssignmentType && x.state.plainAssignment(p, at) {
		return ads.Answer{Next: true}
	}
	out := ads.Answer{
		Share: x.shareOf(v, p, typeURL, name, at),
		Build: func() (proto.Message, error) {
			m, leftOut := x.state.resourceAt(p, typeURL, name, at)
			return m, errors.Join(leftOut...)
		},
	}
	if typeURL == envoy.ListenerType || typeURL == envoy.RouteType {
		out.Without = func(leftOut func(ads.Contribution) ads.Omission) (proto.Message, []ads.Contribution, error) {
			return x.state.without(p, typeURL, name, leftOut)
		}
	}
	if p.Role == objects.GRPCClient && typeURL == envoy.ClusterType {
		// Without a response the client would delay all calls of routes that reference the cluster.
		out.StandIn = func() proto.Message { return emptyCluster(name) }
	}
	return out
}

// serves reports whether a type is provided for a proxy. All other types are left to the server's
// provider of services.
func serves(typeURL string, p *proxy) bool {
	switch typeURL {
	case envoy.ClusterType, envoy.LoadAssignmentType, envoy.RouteType:
		return true
	case envoy.ListenerType:
		return p.Role != objects.SidecarProxy
	default:
		return false
	}
}

// placeOf returns the place of the name of a cluster or a load assignment, or nil.
func (st *state) placeOf(p *proxy, typeURL, name string) *clusterPlace {
	if !ofCluster(typeURL) {
		return nil
	}
	return st.clusterPlaceOf(p, name)
}

// resource returns a resource by its type and name, or nil, and the errors for parts of it that are
// left out.
func (st *state) resource(p *proxy, typeURL, name string) (proto.Message, []error) {
	return st.resourceAt(p, typeURL, name, st.placeOf(p, typeURL, name))
}

// resourceAt is resource for a name whose place is known.
func (st *state) resourceAt(p *proxy, typeURL, name string, at *clusterPlace) (proto.Message, []error) {
	switch typeURL {
	case envoy.ClusterType:
		c, leftOut := st.checkedCluster(p, name, at)
		return orNil(c), leftOut
	case envoy.LoadAssignmentType:
		return orNil(st.assignment(p, name, at)), nil
	case envoy.ListenerType:
		l, leftOut := st.listener(p, name)
		return orNil(l), leftOut
	case envoy.RouteType:
		r, leftOut := st.routes(p, name)
		if r == nil && routesNamed(p, name) {
			r = routeConfiguration(name, nil)
		}
		return orNil(r), leftOut
	default:
		return nil, nil
	}
}

// orNil converts a nil pointer to a nil message.
func orNil[M interface {
	comparable
	proto.Message
}](m M) proto.Message {
	if m == *new(M) {
		return nil
	}
	return m
}

// names returns the names that a wildcard subscription to a type that serves accepts covers, sorted. It
// includes listeners without a filter chain, although these have no resource.
func (st *state) names(p *proxy, typeURL string) []string {
	switch {
	case ofCluster(typeURL):
		return st.clusterNames(p, typeURL)
	case p.Role == objects.GRPCClient: // subscribes to others by name
		return nil
	case typeURL == envoy.ListenerType:
		return slices.Sorted(maps.Keys(st.routerOf(p).listeners))
	case p.Role == objects.Router:
		return st.gatewayRouteNames(p)
	default:
		return st.outboundRouteNames(p)
	}
}
