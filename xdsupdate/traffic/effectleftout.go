// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"errors"
	"slices"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// leftOut finds what of an object clients would refuse, so that they are not sent it.
// It builds what the object contributes for proxies that nothing distinguishes.
func (f *findings) leftOut(o object) {
	switch {
	case o.virtualService != nil:
		f.refusedRules(o.virtualService)
		f.refusedTLS(o.virtualService)
	case o.destinationRule != nil:
		f.refusedClusters(o.destinationRule)
	case o.gateway != nil:
		f.refusedServers(o.gateway)
	}
}

// addOnce records a finding, unless there is one of the field.
func (f *findings) addOnce(field string, reason error) {
	same := func(e Ineffective) bool {
		return e.Kind == f.kind && e.Namespace == f.name.namespace && e.Name == f.name.name && e.Field == field
	}
	if !slices.ContainsFunc(f.found, same) {
		f.add(field, "%s", reason)
	}
}

func (f *findings) refusedRules(v *virtualService) {
	for _, name := range v.gateways {
		_, errs := f.ruleRoutes(&proxy{namespace: v.namespace}, v, place{gateway: name, port: unknownHostPort})
		for _, err := range errs {
			var part *LeftOutError
			if errors.As(err, &part) {
				f.addOnce(part.Field, part.Err)
			}
		}
	}
	at := place{gateway: meshGateway, port: unknownHostPort}
	scope := f.routeScope(&proxy{namespace: v.namespace}, v.namespace, at)
	for i, rule := range v.rules() {
		scope.LeftOut = func(_ *networking.HTTPRoute, reason error) {
			f.addOnce(element("spec.http", i), failedRequests(reason))
		}
		scope.CheckRules([]*networking.HTTPRoute{rule})
	}
}

func (f *findings) refusedTLS(v *virtualService) {
	p := &proxy{role: router, namespace: v.namespace}
	s := &gatewayServer{spec: &networking.Server{Port: &networking.Port{Number: 443}}}
	for i, r := range v.spec.GetTls() {
		for _, m := range r.GetMatch() {
			anywhere := &networking.TLSMatchAttributes{SniHosts: m.GetSniHosts()}
			_, err := envoy.Try(envoy.ForEnvoy, func() *listenerv3.FilterChain { return f.passthroughChain(p, s, v, r, anywhere) })
			if err != nil {
				f.addOnce(element("spec.tls", i), closedConnections(err))
			}
		}
	}
}

func (f *findings) refusedServers(g *gateway) {
	p := &proxy{role: router, namespace: g.namespace, labels: g.spec.GetSelector()}
	for _, l := range f.gatewayListeners(p) {
		if !slices.ContainsFunc(l.servers, func(s *gatewayServer) bool { return s.gateway == g }) {
			continue
		}
		for _, err := range f.filterChains(p, l) {
			var part *LeftOutError
			if errors.As(err, &part) && part.Kind == f.kind && part.Namespace == f.name.namespace && part.Name == f.name.name {
				f.addOnce(part.Field, part.Err)
			}
		}
	}
}

// refusedClusters builds the clusters of all services that a DestinationRule is for,
// with its policies only.
func (f *findings) refusedClusters(r *destinationRule) {
	alone := newRules([]*destinationRule{r})[0]
	for svc := range f.servicesOf(r.host) {
		for _, port := range newService([]*registry.Service{svc}).ports {
			f.refusedCluster(r, clusterPlace{host: svc.Hostname, port: port, rule: alone})
			for _, s := range alone.subsets {
				f.refusedCluster(r, clusterPlace{host: svc.Hostname, port: port, rule: alone, subset: s})
			}
		}
	}
}

func (f *findings) refusedCluster(r *destinationRule, at clusterPlace) {
	_, field := at.rule.owner(at.subset)
	for _, role := range []role{sidecarProxy, router} {
		p := &proxy{role: role, namespace: r.namespace, labels: r.selector}
		_, err := envoy.Try(p.client(), func() *clusterv3.Cluster { return f.upstreamOf(p, p.vantage(), at).Cluster() })
		if err != nil {
			f.addOnce(field, noCluster(at.name(), err))
		}
	}
	hash := envoy.ConsistentHash(at.rule.trafficPolicy(), at.port.Number, at.subset.GetTrafficPolicy())
	if err := envoy.CheckHash(hash); err != nil {
		f.addOnce(field, notHashed(at.name(), err))
	}
}
