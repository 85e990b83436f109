// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"weak"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/hostname"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/memo"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/mesh"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/objects"
)

// state contains the policies, services and endpoints of one snapshot. It is immutable except for
// cached computations.
type state struct {
	*computed
	world     *mesh.World
	workloads *mesh.Workloads
	// report returns the findings about all policies, computed once.
	report func() report
	// made records what a resource is made of. It is nil unless somebody asks.
	made *made
}

// computed contains the policies of one snapshot, and cached computations from policies and
// services that do not depend on endpoints. States that differ only in endpoints share it.
type computed struct {
	*objects.Index
	settings *settings

	scopes memo.Results[scopeKey, *mesh.Scope]
	// bases are the scopes of earlier states. forgotBases means that some are missing, although
	// clients may have their resources.
	bases       map[scopeKey]*mesh.ScopeBase
	forgotBases bool
	// Clients with equal views share a proxy.
	routers       memo.Results[*proxy, *routerConfig]
	clusterScopes memo.Results[*proxy, clusterScope]
	// protections are those of routers. Those of gRPC servers are by namespace and labels.
	protections       memo.Results[*proxy, *protection]
	serverProtections memo.Results[string, *protection]
	// reaches are the reaches of wildcard rules.
	reaches memo.Results[*objects.Rule, *ruleReach]
	// explanations are compiled resources.
	explanations memo.Results[explainedKey, explained]
	shared       sharedRules

	mu   sync.Mutex
	kept keptRoutes
}

type scopeKey struct {
	sidecar   *objects.Sidecar
	namespace string
}

func newState(x *objects.Index, w *mesh.World, s *settings) *state {
	return (&computed{
		Index: x, settings: s, shared: sharedRules{of: make(map[sharedKey]weak.Pointer[builtRules])},
	}).in(w, mesh.NewWorkloads(nil, w, true))
}

func (c *computed) in(w *mesh.World, workloads *mesh.Workloads) *state {
	st := &state{computed: c, world: w, workloads: workloads}
	st.report = sync.OnceValue(st.newReport)
	return st
}

func (st *state) next(x *objects.Index, w *mesh.World, d *difference) *state {
	out := newState(x, w, st.settings)
	out.workloads = mesh.NewWorkloads(st.workloads, w, len(d.services) > 0)
	out.bases, out.forgotBases = st.basesAfter(d), st.forgotScopes()
	st.keepReaches(d, out)
	st.mu.Lock()
	defer st.mu.Unlock()
	out.kept = st.kept.after(d, w, st.Index, x)
	return out
}

// scopeOf returns the scope of a proxy. A router's scope contains everything visible in its
// namespace.
func (st *state) scopeOf(p *proxy) *mesh.Scope {
	key := scopeKey{st.SidecarOf(&p.Proxy), p.Namespace}
	return st.scopes.Get(key, func() *mesh.Scope {
		if base := st.bases[key]; base != nil && base.Scope != nil {
			return base.In(st.Index, st.world, st.settings.limits.Imports)
		}
		return mesh.NewScope(st.Index, st.world, key.sidecar, key.namespace, st.settings.limits.Imports)
	})
}

// serviceFor returns the service that an object of a namespace refers to by a host name, for a
// router: the service in the object's namespace if the router sees it, or else the service that the
// router sees otherwise, or nil.
func (st *state) serviceFor(p *proxy, host registry.Hostname, namespace string) *mesh.Service {
	own := mesh.ChooseService(st.world.Named(host), namespace, func(s *registry.Service) bool {
		return s.Attributes.Namespace == namespace && st.settings.Visible(s, p.Namespace)
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
		return slices.Values(st.world.Named(host))
	}
	return func(yield func(*registry.Service) bool) {
		for name, services := range st.world.Hosts() {
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
func (st *state) seenBy(p *proxy, host registry.Hostname) *mesh.Service {
	key := scopeKey{st.SidecarOf(&p.Proxy), p.Namespace}
	if key.sidecar == nil && st.bases[key] == nil && !st.scopes.Has(key) {
		return (&mesh.Egress{Index: st.Index, Namespace: p.Namespace}).Choose(st.world.Named(host))
	}
	return st.scopeOf(p).Service(host)
}

// scopeBases returns the bases of a state's scopes, including those inherited from earlier states.
func (st *state) scopeBases() map[scopeKey]*mesh.ScopeBase {
	out := maps.Clone(st.bases)
	if out == nil {
		out = make(map[scopeKey]*mesh.ScopeBase)
	}
	for key, s := range st.scopes.All() {
		out[key] = mesh.NewScopeBase(s)
	}
	return out
}

// forgotScopes reports whether scopeBases lacks scopes whose resources clients may have.
func (st *state) forgotScopes() bool { return st.forgotBases || st.scopes.Forgot() }

// basesAfter returns the bases after a difference.
func (st *state) basesAfter(d *difference) map[scopeKey]*mesh.ScopeBase {
	out := st.scopeBases()
	gone := make(map[*objects.Sidecar]struct{})
	for _, o := range d.objects {
		if s, is := o.Before.(*objects.Sidecar); is {
			gone[s] = struct{}{}
		}
	}
	for key, base := range out {
		next := base.Since(d.services, d.virtualServices())
		if _, is := gone[key.sidecar]; is || next == nil {
			delete(out, key)
		} else {
			out[key] = next
		}
	}
	return out
}

// difference contains the changes of a push.
type difference struct {
	before, after *state
	// services are the hosts, in lower case, with changed services. endpoints are the hosts that
	// have only changed endpoints.
	services, endpoints []registry.Hostname
	objects             []objects.Change
	// clients are the places that clients have asked about, and places returns the places of workloads
	// with changes.
	clients *mesh.Places
	places  func() map[mesh.Place]struct{}
}

// difference returns the changes of a push relative to the old state. It leaves after unset.
func (p *Policies) difference(push *ads.PushContext, old *state) *difference {
	d := &difference{before: old, clients: p.places}
	d.places = sync.OnceValue(func() map[mesh.Place]struct{} {
		return mesh.ChangedPlaces(old.world, d.after.world, d.endpoints, d.services)
	})
	for _, changed := range push.ChangedHosts() {
		if changed.EndpointsOnly {
			d.endpoints = append(d.endpoints, hostname.Lower(changed.Hostname))
		} else {
			d.services = append(d.services, hostname.Lower(changed.Hostname))
		}
	}
	changed, otherKeys := p.takeAll(push, old)
	for _, key := range slices.SortedFunc(maps.Keys(changed), compareKeys) {
		before, _ := old.Objects.Get(key)
		now := changed[key]
		if _, rekeyed := otherKeys[key]; objects.SameConfig(objects.ConfigIn(before), now) && (!rekeyed || now == nil) {
			continue
		}
		p.settings.keys.follow(key, objects.ConfigIn(before), now)
		if after := objects.NewObject(now, &p.settings.Settings); before != nil || after != nil {
			d.objects = append(d.objects, objects.Change{Key: key, Before: before, After: after})
		}
	}
	return d
}

// takeAll returns the changed configs. They include otherKeys, the configs with changed token keys.
func (p *Policies) takeAll(push *ads.PushContext, old *state) (changed map[configstore.ConfigKey]*configstore.Config, otherKeys map[configstore.ConfigKey]struct{}) {
	changed, otherKeys = p.take(push), p.settings.keys.take()
	if changed == nil {
		changed = make(map[configstore.ConfigKey]*configstore.Config)
	}
	for key := range otherKeys {
		if _, also := changed[key]; !also {
			o, _ := old.Objects.Get(key)
			changed[key] = objects.ConfigIn(o)
		}
	}
	return changed, otherKeys
}

// now yields the changed objects as they are now.
func (d *difference) now() iter.Seq2[configstore.ConfigKey, objects.Object] {
	return func(yield func(configstore.ConfigKey, objects.Object) bool) {
		for _, o := range d.objects {
			if !yield(o.Key, o.After) {
				return
			}
		}
	}
}

// endpointsOnly reports whether policies and services are unchanged.
func (d *difference) endpointsOnly() bool { return len(d.services)+len(d.objects) == 0 }

func compareKeys(a, b configstore.ConfigKey) int {
	return strings.Compare(a.Kind.Kind+"/"+a.Namespace+"/"+a.Name, b.Kind.Kind+"/"+b.Namespace+"/"+b.Name)
}

// virtualServices returns the old and new revisions of the changed VirtualServices.
func (d *difference) virtualServices() []*objects.VirtualService {
	var out []*objects.VirtualService
	for _, o := range d.objects {
		out = append(out, objects.Of[*objects.VirtualService](o.Revisions())...)
	}
	return out
}
