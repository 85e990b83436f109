// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"sync"

	"github.com/pilotkit/pilotkit/registry"
)

// state is the policies, services and endpoints of one moment. It is immutable but
// for what it has computed of them.
type state struct {
	*computed
	world     world
	workloads *workloads
}

// computed is the policies of one moment, and what has been computed of them and of
// services, which does not depend on endpoints: states that differ in endpoints alone
// share it.
type computed struct {
	*index

	mu     sync.Mutex
	scopes map[scopeKey]*scope
	bases  map[scopeKey]*scopeBase
	// routers are by their proxies, which the clients that are alike share.
	routers map[*proxy]*routerConfig
	// clusterScopes are by their proxies, too.
	clusterScopes map[*proxy]clusterScope
	kept          keptRoutes
	// reaches are those of rules for wildcards that were looked at.
	reaches map[*rule]*ruleReach
	// protections are by their proxies, too.
	protections map[*proxy]*protection
	// serverProtections are those of gRPC servers, by namespace and labels.
	serverProtections map[string]*protection
}

type scopeKey struct {
	sidecar   *sidecar
	namespace string
}

func newState(x *index, w world) *state {
	return &state{world: w, workloads: newWorkloads(nil, w, true), computed: &computed{
		index: x, scopes: make(map[scopeKey]*scope), routers: make(map[*proxy]*routerConfig),
		clusterScopes: make(map[*proxy]clusterScope), reaches: make(map[*rule]*ruleReach),
		protections: make(map[*proxy]*protection), serverProtections: make(map[string]*protection),
	}}
}

// withEndpoints returns the state with the endpoints of a world whose services are the
// same.
func (st *state) withEndpoints(w world) *state {
	return &state{computed: st.computed, world: w, workloads: newWorkloads(st.workloads, w, false)}
}

// next returns the state after a difference.
func (st *state) next(x *index, w world, d *difference) *state {
	out := newState(x, w)
	out.workloads = newWorkloads(st.workloads, w, len(d.services) > 0)
	st.mu.Lock()
	defer st.mu.Unlock()
	out.kept = st.kept.after(d, w, st.index, x)
	out.reaches = st.reachesAfter(d, x)
	out.bases = st.basesAfter(d)
	return out
}

// scopeOf returns what a proxy sees. A router sees everything that is visible in
// its namespace.
func (st *state) scopeOf(p *proxy) *scope {
	key := scopeKey{st.sidecarOf(p), p.namespace}
	st.mu.Lock()
	defer st.mu.Unlock()
	s := st.scopes[key]
	if s == nil {
		if base := st.bases[key]; base != nil && base.scope != nil {
			s = base.in(st.index, st.world)
		} else {
			s = newScope(st.index, st.world, key.sidecar, key.namespace)
		}
		st.scopes[key] = s
	}
	return s
}

// serviceFor returns the service that an object of a namespace means by a host name
// when it is used for a router: that of the object's namespace if it is visible
// there, else as the router sees it; nil for none.
func (st *state) serviceFor(p *proxy, host registry.Hostname, namespace string) *service {
	own := chooseService(st.world.named(host), namespace, func(s *registry.Service) bool {
		return s.Attributes.Namespace == namespace && st.settings.visible(s, namespace)
	})
	if own != nil {
		return own
	}
	return st.seenBy(p, host)
}

// seenBy returns the service that a proxy means by a host name; nil for none. The scope of a
// namespace costs as much as there are services: it is not made for one of them.
func (st *state) seenBy(p *proxy, host registry.Hostname) *service {
	key := scopeKey{st.sidecarOf(p), p.namespace}
	st.mu.Lock()
	made := st.scopes[key] != nil || st.bases[key] != nil
	st.mu.Unlock()
	if key.sidecar == nil && !made {
		return (&egress{index: st.index, namespace: p.namespace}).choose(st.world.named(host))
	}
	return st.scopeOf(p).service(host)
}
