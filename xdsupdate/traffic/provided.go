// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"errors"
	"iter"
	"slices"
	"sync"

	"google.golang.org/protobuf/proto"

	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// provided is what the policies give the server in one push. It is immutable but
// for what it has computed.
type provided struct {
	state   *state
	world   *pushWorld
	mu      sync.Mutex
	proxies map[ads.View]*proxy
}

// Provide implements ads.Provider.
func (p *Policies) Provide(push *ads.PushContext) (ads.Provided, ads.Changes) {
	next := &provided{proxies: make(map[ads.View]*proxy)}
	var changes ads.Changes
	last := p.last.Load()
	if last == nil {
		p.take()
		next.world = newPushWorld(nil, push)
		next.state = newState(newIndex(p.configs, p.settings), next.world)
	} else {
		next.world = newPushWorld(last.world, push)
		d := p.difference(push, last.state, next.world)
		next.state = d.after
		changes = newConcerned(d).changes()
	}
	changes.Regroup = p.regroup(next.state.index)
	changes.Regroup = p.targets.advance(next.world, push) || changes.Regroup
	p.last.Store(next)
	return next, changes
}

// proxy returns what makes a difference in the proxies of a view.
func (x *provided) proxy(v ads.View) *proxy {
	x.mu.Lock()
	defer x.mu.Unlock()
	p := x.proxies[v]
	if p == nil {
		p = proxyOf(v)
		x.proxies[v] = p
	}
	return p
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
func (x *provided) Covers(v ads.View, typeURL, name string) bool {
	p := x.proxy(v)
	switch typeURL {
	case envoy.ClusterType:
		return x.state.coversCluster(p, name)
	case envoy.LoadAssignmentType:
		return x.state.coversAssignment(p, name)
	case envoy.ListenerType:
		return p.role == router && x.state.routerOf(p).listeners[name] != nil
	default:
		_, found := slices.BinarySearch(x.state.names(p, typeURL), name)
		return found
	}
}

// Lookup implements ads.Provided.
func (x *provided) Lookup(v ads.View, typeURL, name string) ads.Answer {
	p := x.proxy(v)
	if !serves(typeURL, p) || typeURL == envoy.LoadAssignmentType && x.state.plainAssignment(p, name) {
		return ads.Answer{BuiltIn: true}
	}
	out := ads.Answer{
		Share: x.shareOf(v, p, typeURL, name),
		Build: func() (proto.Message, error) { return x.state.resource(p, typeURL, name) },
	}
	if typeURL == envoy.ListenerType || typeURL == envoy.RouteType {
		out.Without = func(leftOut func(ads.Contribution) bool) (proto.Message, []ads.Contribution, error) {
			return x.state.without(p, typeURL, name, leftOut)
		}
	}
	if p.role == grpcClient && typeURL == envoy.ClusterType {
		// Without an answer the client holds back all calls of the routes that name it.
		out.StandIn = func() proto.Message { return envoy.EmptyCluster(name) }
	}
	return out
}

// serves reports whether a type is provided for a proxy; else it is built in.
func serves(typeURL string, p *proxy) bool {
	switch typeURL {
	case envoy.ClusterType, envoy.LoadAssignmentType, envoy.RouteType:
		return true
	case envoy.ListenerType:
		return p.role != sidecarProxy
	default:
		return false
	}
}

// resource returns a resource by its type and name, nil for none, and what is left out
// of it.
func (st *state) resource(p *proxy, typeURL, name string) (proto.Message, error) {
	switch typeURL {
	case envoy.ClusterType:
		return orNil(st.checkedCluster(p, name))
	case envoy.LoadAssignmentType:
		return orNil(st.assignment(p, name), nil)
	case envoy.ListenerType:
		l, leftOut := st.listener(p, name)
		return orNil(l, errors.Join(leftOut...))
	case envoy.RouteType:
		r, leftOut := st.routes(p, name)
		if r == nil {
			r = emptyRoutes(p, name)
		}
		return orNil(r, errors.Join(leftOut...))
	default:
		return nil, nil
	}
}

// orNil makes a nil pointer a nil message.
func orNil[M interface {
	comparable
	proto.Message
}](m M, err error) (proto.Message, error) {
	if m == *new(M) {
		return nil, err
	}
	return m, err
}

// names returns what a wildcard subscription to a type covers, sorted.
func (st *state) names(p *proxy, typeURL string) []string {
	switch typeURL {
	case envoy.ClusterType:
		return st.clusterNames(p)
	case envoy.LoadAssignmentType:
		return st.assignmentNames(p)
	case envoy.ListenerType:
		return st.listenerNames(p)
	case envoy.RouteType:
		return st.routeNames(p)
	default:
		return nil
	}
}
