// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"iter"
	"slices"
	"sync"
	"weak"

	"github.com/pilotkit/pilotkit/registry"
)

// state contains the policies, services and endpoints of one snapshot. It is immutable except for
// cached computations.
type state struct {
	*computed
	world     world
	workloads *workloads
	// report returns the findings about all policies, computed once.
	report func() report
	// made records what a resource is made of. It is nil unless somebody asks.
	made *made
}

// computed contains the policies of one snapshot, and cached computations from policies and
// services that do not depend on endpoints. States that differ only in endpoints share it.
type computed struct {
	*index

	scopes memo[scopeKey, *scope]
	// bases are the scopes of earlier states.
	bases map[scopeKey]*scopeBase
	// Clients with equal views share a proxy.
	routers       memo[*proxy, *routerConfig]
	clusterScopes memo[*proxy, clusterScope]
	// protections are those of routers. Those of gRPC servers are by namespace and labels.
	protections       memo[*proxy, *protection]
	serverProtections memo[string, *protection]
	// reaches are the reaches of wildcard rules.
	reaches memo[*rule, *ruleReach]
	// explanations are compiled resources.
	explanations memo[explainedKey, explained]
	shared       sharedRules

	mu   sync.Mutex
	kept keptRoutes
}

type scopeKey struct {
	sidecar   *sidecar
	namespace string
}

func newState(x *index, w world) *state {
	return (&computed{
		index: x, shared: sharedRules{of: make(map[sharedKey]weak.Pointer[builtRules])},
	}).in(w, newWorkloads(nil, w, true))
}

func (c *computed) in(w world, workloads *workloads) *state {
	st := &state{computed: c, world: w, workloads: workloads}
	st.report = sync.OnceValue(st.newReport)
	return st
}

// withEndpoints returns the state with the endpoints of a world. The world's services must be
// unchanged.
func (st *state) withEndpoints(w world) *state {
	return st.in(w, newWorkloads(st.workloads, w, false))
}

func (st *state) next(x *index, w world, d *difference) *state {
	out := newState(x, w)
	out.workloads = newWorkloads(st.workloads, w, len(d.services) > 0)
	out.bases = st.basesAfter(d)
	st.keepReaches(d, out)
	st.mu.Lock()
	defer st.mu.Unlock()
	out.kept = st.kept.after(d, w, st.index, x)
	return out
}

// scopeOf returns the scope of a proxy. A router's scope contains everything visible in its
// namespace.
func (st *state) scopeOf(p *proxy) *scope {
	key := scopeKey{st.sidecarOf(p), p.namespace}
	return st.scopes.get(key, func() *scope {
		if base := st.bases[key]; base != nil && base.scope != nil {
			return base.in(st.index, st.world)
		}
		return newScope(st.index, st.world, key.sidecar, key.namespace)
	})
}

// serviceFor returns the service that an object of a namespace refers to by a host name, for a
// router: the service in the object's namespace if it is visible there, or else the service that
// the router sees, or nil.
func (st *state) serviceFor(p *proxy, host registry.Hostname, namespace string) *service {
	own := chooseService(st.world.named(host), namespace, func(s *registry.Service) bool {
		return s.Attributes.Namespace == namespace && st.settings.visible(s, namespace)
	})
	if own != nil {
		return own
	}
	return st.seenBy(p, host)
}

// servicesOf yields the services with a host name. For a wildcard it yields all services that it
// covers.
func (st *state) servicesOf(host registry.Hostname) iter.Seq[*registry.Service] {
	if !host.IsWildcard() {
		return slices.Values(st.world.named(host))
	}
	return func(yield func(*registry.Service) bool) {
		for name, services := range st.world.hosts() {
			for _, s := range services {
				if name.SubsetOf(host) && !yield(s) {
					return
				}
			}
		}
	}
}

// seenBy returns the service that a proxy sees for a host name, or nil. It does not build a scope
// for a single lookup, because that costs as much as the number of services.
func (st *state) seenBy(p *proxy, host registry.Hostname) *service {
	key := scopeKey{st.sidecarOf(p), p.namespace}
	if key.sidecar == nil && st.bases[key] == nil && !st.scopes.has(key) {
		return (&egress{index: st.index, namespace: p.namespace}).choose(st.world.named(host))
	}
	return st.scopeOf(p).service(host)
}
