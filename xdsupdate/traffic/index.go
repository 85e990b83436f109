// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"cmp"
	"iter"
	"maps"
	"slices"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/internal/limit"
	"github.com/pilotkit/pilotkit/internal/pmap"
)

// index contains all policies of one snapshot. It is immutable. The next push derives its index
// from it, at the cost of the changes and of copied lists of pointers.
type index struct {
	settings *settings
	// virtualServices contains the VirtualServices with hosts, sorted by compareVirtualServices.
	// Delegates are found by name.
	virtualServices []*virtualService
	delegates       map[objectName]*virtualService
	finder          virtualServiceFinder
	rules           ruleIndex
	// gateways are sorted by compareGateways.
	gateways []*gateway
	// sidecars are grouped by namespace and sorted by compareSidecars.
	sidecars namespaceLists[sidecar]
	// authorizations are grouped by namespace and sorted by compareAuthorizationPolicies.
	authorizations namespaceLists[authorizationPolicy]
	// peers are grouped by namespace and sorted by comparePeerAuthentications.
	peers namespaceLists[peerAuthentication]
	// requestAuthentications are grouped by namespace and sorted by compareRequestAuthentications.
	requestAuthentications namespaceLists[requestAuthentication]
	objects                pmap.Map[configstore.ConfigKey, object]
	// labelKeys counts the references of policies to labels, by key.
	labelKeys pmap.Map[string, int]
}

// object is an object of one of the kinds in an index. At most one field is set.
type object struct {
	virtualService        *virtualService
	destinationRule       *destinationRule
	gateway               *gateway
	sidecar               *sidecar
	authorization         *authorizationPolicy
	peer                  *peerAuthentication
	requestAuthentication *requestAuthentication
}

// newObject parses a config, which may be nil.
func newObject(c *configstore.Config, s *settings) object {
	if c == nil {
		return object{}
	}
	switch c.GroupVersionKind {
	case istio.VirtualService:
		return object{virtualService: newVirtualService(c, s)}
	case istio.DestinationRule:
		return object{destinationRule: newDestinationRule(c, s)}
	case istio.Gateway:
		return object{gateway: newGateway(c)}
	case istio.Sidecar:
		return object{sidecar: newSidecar(c)}
	case istio.AuthorizationPolicy:
		return object{authorization: newAuthorizationPolicy(c)}
	case istio.PeerAuthentication:
		return object{peer: newPeerAuthentication(c)}
	case istio.RequestAuthentication:
		return object{requestAuthentication: newRequestAuthentication(c, s)}
	default:
		return object{}
	}
}

// config returns the config of an object. It is nil for the zero object.
func (o object) config() *configstore.Config {
	switch {
	case o.virtualService != nil:
		return o.virtualService.config
	case o.destinationRule != nil:
		return o.destinationRule.config
	case o.gateway != nil:
		return o.gateway.config
	case o.sidecar != nil:
		return o.sidecar.config
	case o.authorization != nil:
		return o.authorization.config
	case o.peer != nil:
		return o.peer.config
	case o.requestAuthentication != nil:
		return o.requestAuthentication.config
	default:
		return nil
	}
}

// newIndex returns the index of configs. Nil configs are skipped.
func newIndex(configs map[configstore.ConfigKey]*configstore.Config, s *settings) *index {
	return buildIndex(s, func(yield func(configstore.ConfigKey, object) bool) {
		for key, c := range configs {
			if c != nil && !yield(key, newObject(c, s)) {
				return
			}
		}
	})
}

// buildIndex returns an index of objects.
func buildIndex(s *settings, objects iter.Seq2[configstore.ConfigKey, object]) *index {
	x := &index{settings: s, delegates: make(map[objectName]*virtualService)}
	sidecars, authorizations := make(map[string][]*sidecar), make(map[string][]*authorizationPolicy)
	peers, requestAuthentications := make(map[string][]*peerAuthentication), make(map[string][]*requestAuthentication)
	var found virtualServiceLists
	var rules []*destinationRule
	for key, o := range objects {
		x.remember(key, object{}, o)
		switch {
		case o.virtualService != nil && o.virtualService.delegate():
			x.delegates[o.virtualService.objectName] = o.virtualService
		case o.virtualService != nil:
			x.virtualServices = append(x.virtualServices, o.virtualService)
		case o.gateway != nil:
			x.gateways = append(x.gateways, o.gateway)
		case o.sidecar != nil:
			sidecars[o.sidecar.namespace] = append(sidecars[o.sidecar.namespace], o.sidecar)
		case o.destinationRule != nil:
			rules = append(rules, o.destinationRule)
		case o.authorization != nil:
			authorizations[o.authorization.namespace] = append(authorizations[o.authorization.namespace], o.authorization)
		case o.peer != nil:
			peers[o.peer.namespace] = append(peers[o.peer.namespace], o.peer)
		case o.requestAuthentication != nil:
			a := o.requestAuthentication
			requestAuthentications[a.namespace] = append(requestAuthentications[a.namespace], a)
		}
	}
	x.rules = newRuleIndex(rules)
	slices.SortFunc(x.virtualServices, compareVirtualServices)
	slices.SortFunc(x.gateways, compareGateways)
	x.sidecars = newNamespaceLists(sidecars, compareSidecars)
	x.authorizations = newNamespaceLists(authorizations, compareAuthorizationPolicies)
	x.peers = newNamespaceLists(peers, comparePeerAuthentications)
	x.requestAuthentications = newNamespaceLists(requestAuthentications, compareRequestAuthentications)
	for _, v := range x.virtualServices {
		found.add(v, x.destinationsOf(v))
	}
	x.finder = found.finder()
	return x
}

func compareVirtualServices(a, b *virtualService) int { return compareConfigs(a.config, b.config) }

func compareGateways(a, b *gateway) int { return compareConfigs(a.config, b.config) }

// fewChanges is the maximum number of changes for deriving an index from the last one, however
// small the index is.
const fewChanges limit.Size = 64

// withAll returns the index after changes of different objects. Each change copies the lists that
// contain the object. Many changes therefore lead to a new index.
func (x *index) withAll(changes []objectChange) *index {
	if len(changes) <= max(fewChanges.Get(), x.objects.Len()/64) {
		for _, ch := range changes {
			x = x.with(ch.key, ch.before, ch.after)
		}
		return x
	}
	objects := x.objects
	for _, ch := range changes {
		if ch.after == (object{}) {
			objects = objects.Delete(ch.key)
		} else {
			objects = objects.Set(ch.key, ch.after)
		}
	}
	return buildIndex(x.settings, objects.All())
}

// with returns the index with one object replaced by another with the same key. Both may be empty.
func (x *index) with(key configstore.ConfigKey, before, after object) *index {
	out := *x
	out.remember(key, before, after)
	out.rules = x.rules.with(before.destinationRule, after.destinationRule)
	out.gateways = replaced(x.gateways, before.gateway, after.gateway, compareGateways)
	if s := cmp.Or(before.sidecar, after.sidecar); s != nil {
		out.sidecars = x.sidecars.with(s.namespace, before.sidecar, after.sidecar, compareSidecars)
	}
	if a := cmp.Or(before.authorization, after.authorization); a != nil {
		out.authorizations = x.authorizations.with(a.namespace, before.authorization, after.authorization, compareAuthorizationPolicies)
	}
	if a := cmp.Or(before.peer, after.peer); a != nil {
		out.peers = x.peers.with(a.namespace, before.peer, after.peer, comparePeerAuthentications)
	}
	if a := cmp.Or(before.requestAuthentication, after.requestAuthentication); a != nil {
		out.requestAuthentications = x.requestAuthentications.with(
			a.namespace, before.requestAuthentication, after.requestAuthentication, compareRequestAuthentications)
	}
	out.replaceVirtualService(x, before.virtualService, after.virtualService)
	return &out
}

// remember replaces an object and updates the counts of its label keys.
func (x *index) remember(key configstore.ConfigKey, before, after object) {
	if after == (object{}) {
		x.objects = x.objects.Delete(key)
	} else {
		x.objects = x.objects.Set(key, after)
	}
	x.countKeys(before.labelKeys(), -1)
	x.countKeys(after.labelKeys(), 1)
}

func (x *index) countKeys(keys []string, by int) {
	for _, k := range keys {
		n, _ := x.labelKeys.Get(k)
		if n += by; n == 0 {
			x.labelKeys = x.labelKeys.Delete(k)
		} else {
			x.labelKeys = x.labelKeys.Set(k, n)
		}
	}
}

// replaceVirtualService replaces a VirtualService in a copy of an old index. Both may be nil. If it
// is a delegate, the destinations of the VirtualServices that include it are updated.
func (x *index) replaceVirtualService(old *index, before, after *virtualService) {
	if before == nil && after == nil {
		return
	}
	var roots []*virtualService
	for _, v := range []*virtualService{before, after} {
		if v != nil && v.delegate() {
			roots = old.finder.roots(v.objectName) // both have the same name
		}
	}
	x.delegates = make(map[objectName]*virtualService, len(old.delegates)+1)
	maps.Copy(x.delegates, old.delegates)
	if before != nil && before.delegate() {
		delete(x.delegates, before.objectName)
		before = nil
	}
	if after != nil && after.delegate() {
		x.delegates[after.objectName] = after
		after = nil
	}
	x.virtualServices = replaced(old.virtualServices, before, after, compareVirtualServices)
	if before != nil {
		x.finder = x.finder.without(before, old.destinationsOf(before))
	}
	for _, root := range roots {
		if root != before {
			x.finder = x.finder.without(root, old.destinationsOf(root)).with(root, x.destinationsOf(root))
		}
	}
	if after != nil {
		x.finder = x.finder.with(after, x.destinationsOf(after))
	}
}

// replaced returns a copy of a sorted list with one element replaced by another. Both may be nil.
func replaced[T any](list []*T, before, after *T, compare func(a, b *T) int) []*T {
	if before == nil && after == nil {
		return list
	}
	out := make([]*T, 0, len(list)+1)
	if before != nil {
		i := slices.Index(list, before)
		list = append(append(out, list[:i]...), list[i+1:]...)
	} else {
		list = append(out, list...)
	}
	if after != nil {
		i, _ := slices.BinarySearchFunc(list, after, compare)
		list = slices.Insert(list, i, after)
	}
	return list
}

// virtualServicesFor returns the VirtualServices bound to a gateway, or to "mesh", that are visible
// to proxies of a namespace, in the order of precedence.
func (x *index) virtualServicesFor(gateway, namespace string) []*virtualService {
	bound := x.finder.boundTo(gateway)
	out := make([]*virtualService, 0, len(bound))
	for _, v := range bound {
		if v.visibility.in(namespace) {
			out = append(out, v)
		}
	}
	slices.SortStableFunc(out, func(a, b *virtualService) int {
		return cmp.Compare(a.rank(namespace), b.rank(namespace))
	})
	return out
}

// gatewaysOf returns the Gateways that select a router, in order.
func (x *index) gatewaysOf(p *proxy) []*gateway {
	var out []*gateway
	for _, g := range x.gateways {
		if g.selects(p) {
			out = append(out, g)
		}
	}
	return out
}

// sidecarOf returns the Sidecar of a proxy: the first one in its namespace whose selector matches
// or is empty, or else the first one in the root namespace without a selector. It is nil if there
// is none, and for routers.
func (x *index) sidecarOf(p *proxy) *sidecar {
	if p.role == router {
		return nil
	}
	for _, s := range x.sidecars.in(p.namespace) {
		if !s.selective() || s.selector.SubsetOf(p.labels) {
			return s
		}
	}
	for _, s := range x.sidecars.in(x.settings.rootNamespace()) {
		if !s.selective() {
			return s
		}
	}
	return nil
}
