// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"cmp"
	"slices"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/registry"
)

// configReader is what an index is made of.
type configReader interface {
	List(kind configstore.GroupVersionKind, namespace string) []*configstore.Config
}

// index is the policies of one moment. It is immutable.
type index struct {
	settings *settings
	// virtualServices with hosts are sorted by compareConfigs; delegates are found by
	// their names.
	virtualServices []*virtualService
	delegates       map[objectName]*virtualService
	rules           ruleIndex
	// gateways are sorted by compareConfigs.
	gateways []*gateway
	// sidecars are by namespace, sorted by compareSidecars.
	sidecars map[string][]*sidecar
}

// newIndex reads all policies.
func newIndex(configs configReader, s *settings) *index {
	x := &index{
		settings:  s,
		delegates: make(map[objectName]*virtualService),
		sidecars:  make(map[string][]*sidecar),
	}
	for _, c := range configs.List(istio.VirtualService, configstore.NamespaceAll) {
		if v := newVirtualService(c, s); v == nil {
			continue
		} else if v.delegate() {
			x.delegates[v.objectName] = v
		} else {
			x.virtualServices = append(x.virtualServices, v)
		}
	}
	for _, c := range configs.List(istio.DestinationRule, configstore.NamespaceAll) {
		if r := newDestinationRule(c, s); r != nil {
			x.rules = x.rules.with(nil, r)
		}
	}
	for _, c := range configs.List(istio.Gateway, configstore.NamespaceAll) {
		if g := newGateway(c); g != nil {
			x.gateways = append(x.gateways, g)
		}
	}
	for _, c := range configs.List(istio.Sidecar, configstore.NamespaceAll) {
		if sc := newSidecar(c); sc != nil {
			x.sidecars[sc.namespace] = append(x.sidecars[sc.namespace], sc)
		}
	}
	x.sort()
	return x
}

func (x *index) sort() {
	slices.SortFunc(x.virtualServices, func(a, b *virtualService) int { return compareConfigs(a.config, b.config) })
	slices.SortFunc(x.gateways, func(a, b *gateway) int { return compareConfigs(a.config, b.config) })
	for _, list := range x.sidecars {
		slices.SortFunc(list, compareSidecars)
	}
}

// virtualServicesFor returns the VirtualServices bound to a gateway, or to "mesh",
// that count for proxies of a namespace, in the order of precedence.
func (x *index) virtualServicesFor(gateway, namespace string) []*virtualService {
	var out []*virtualService
	for _, v := range x.virtualServices {
		if v.boundTo(gateway) && v.visibility.in(namespace) {
			out = append(out, v)
		}
	}
	slices.SortStableFunc(out, func(a, b *virtualService) int {
		return cmp.Compare(a.rank(namespace), b.rank(namespace))
	})
	return out
}

// gatewaysOf returns the Gateways that select routers with these labels, in order.
func (x *index) gatewaysOf(labels registry.Labels) []*gateway {
	var out []*gateway
	for _, g := range x.gateways {
		if g.selects(labels) {
			out = append(out, g)
		}
	}
	return out
}

// sidecarOf returns the Sidecar of a proxy: the first of its namespace whose
// selector fits, else the first there without a selector, else that of the root
// namespace; nil without any, and for routers.
func (x *index) sidecarOf(p *proxy) *sidecar {
	if p.role == router {
		return nil
	}
	for _, s := range x.sidecars[p.namespace] {
		if !s.selective() || s.selector.SubsetOf(p.labels) {
			return s
		}
	}
	for _, s := range x.sidecars[x.settings.rootNamespace()] {
		if !s.selective() {
			return s
		}
	}
	return nil
}
