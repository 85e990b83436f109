// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/internal/xdsbuild"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// leftOut adds findings for the parts of an object that are not sent because clients would reject
// them. It builds the object's resources for proxies without distinguishing labels.
func (f *findings) leftOut(o object) {
	switch o := o.(type) {
	case *virtualService:
		f.refusedRules(o)
		f.refusedTLS(o)
	case *destinationRule:
		f.refusedClusters(o)
	case *gateway:
		f.refusedServers(o)
	}
}

// unhindered returns a proxy of a namespace that sees services without a Sidecar's restrictions.
func unhindered(namespace string) *proxy { return &proxy{role: router, namespace: namespace} }

// addOnce records a finding unless the field has one already.
func (f *findings) addOnce(field string, reason error) {
	if _, again := f.fields[Ineffective{Kind: f.kind, Namespace: f.name.namespace, Name: f.name.name, Field: field}]; !again {
		f.add(field, "%s", reason)
	}
}

func (f *findings) refusedRules(v *virtualService) {
	p := unhindered(v.namespace)
	for _, name := range v.gateways {
		_, errs := f.ruleRoutes(p, v, place{gateway: name, port: unknownHostPort})
		for _, err := range append(errs, f.withoutRoom(v, name)...) {
			var part *LeftOutError
			if errors.As(err, &part) {
				f.addOnce(part.Field, part.Err)
			}
		}
	}
	at := place{gateway: meshGateway, port: unknownHostPort}
	scope := f.rulesScope(p, v, at)
	for i, rule := range v.rules() {
		scope.LeftOut = func(_ *networking.HTTPRoute, reason error) {
			f.addOnce(element("spec.http", i), failedRequests(reason))
		}
		scope.CheckRules([]*networking.HTTPRoute{rule})
	}
}

func (f *findings) refusedTLS(v *virtualService) {
	p := &proxy{role: router, namespace: v.namespace}
	s := &gatewayServer{kind: passthrough, spec: &networking.Server{Port: &networking.Port{Number: 443}}}
	for i, r := range v.spec.GetTls() {
		for _, m := range r.GetMatch() {
			anywhere := &networking.TLSMatchAttributes{SniHosts: m.GetSniHosts()}
			_, err := xdsbuild.Try(envoy.ForEnvoy, func() *listenerv3.FilterChain { return f.tlsChain(p, s, v, r, anywhere, nil) })
			if err != nil {
				f.addOnce(element("spec.tls", i), closedConnections(err))
			}
		}
	}
}

func (f *findings) refusedServers(g *gateway) {
	p := f.routerFor(g)
	for _, l := range f.listenersFor(g) {
		if !slices.ContainsFunc(l.servers, func(s *gatewayServer) bool { return s.gateway == g }) {
			continue
		}
		_, errs := f.filterChains(p, l, f.protectionOf(p))
		for _, err := range errs {
			var part *LeftOutError
			if errors.As(err, &part) && part.Kind == f.kind && part.Namespace == f.name.namespace && part.Name == f.name.name {
				f.addOnce(part.Field, part.Err)
			}
		}
	}
}

// refusedClusters builds the clusters of all services that a DestinationRule applies to, with the
// policies of this rule alone.
func (f *findings) refusedClusters(r *destinationRule) {
	alone := newRules([]*destinationRule{r})[0]
	f.withoutReach(alone)
	for svc := range f.servicesOf(r.host) {
		for _, port := range newService([]*registry.Service{svc}).ports {
			f.refusedCluster(r, clusterPlace{host: svc.Hostname, port: port, rule: alone})
			for _, s := range f.subsetsOf(alone, svc.Hostname) {
				f.refusedCluster(r, clusterPlace{host: svc.Hostname, port: port, rule: alone, subset: s})
			}
		}
	}
}

// withoutReach adds findings for services that exceed the limits of a DestinationRule.
func (f *findings) withoutReach(alone *rule) {
	reach := f.reachOf(alone)
	if reach == nil {
		return
	}
	hosts := slices.SortedFunc(maps.Keys(reach.ranks), func(a, b registry.Hostname) int { return reach.ranks[a] - reach.ranks[b] })
	if n := reach.subsets[0]; n < len(hosts) && len(alone.subsets) > 0 {
		f.addOnce("spec.subsets", f.tooManySubsets(hosts[n]))
	}
	if reach.hashed < len(hosts) {
		_, err := f.noRoomForHash(alone, hosts[reach.hashed])
		f.addOnce("spec.trafficPolicy", err)
	}
	if reach.policy < len(hosts) {
		f.addOnce("spec.trafficPolicy", fmt.Errorf("the clusters of %s, and of services beyond the shares of their namespaces, are left out: %w",
			hosts[reach.policy], f.noRoomForPolicy(alone, hosts[reach.policy])))
	}
}

func (f *findings) refusedCluster(r *destinationRule, at clusterPlace) {
	_, field := at.rule.owner(at.subset)
	for _, role := range []role{sidecarProxy, router} {
		p := &proxy{role: role, namespace: r.namespace, labels: r.selector}
		_, err := xdsbuild.Try(p.client(), func() *clusterv3.Cluster { return f.upstreamOf(p, &at).Cluster() })
		if err != nil {
			f.addOnce(field, noCluster(at.name(), err))
		}
	}
	hash := xdsbuild.ConsistentHash(at.rule.trafficPolicy(), at.port.Number, at.subset.GetTrafficPolicy())
	if err := xdsbuild.CheckHash(hash); err != nil {
		f.addOnce(field, notHashed(at.name(), err))
	}
}
