// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/internal/excerpt"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// explain evaluates one call of a proxy. Routes are evaluated from the configs, and policies from
// the listener as the proxy receives it.
func (st *state) explain(p *proxy, call Call, leftOut []listenerLeftOut) Explanation {
	call = call.complete()
	x := &explaining{state: st, proxy: p, call: call, leftOut: leftOut, authority: cmp.Or(call.Headers["host"], string(call.Host))}
	x.call.Host = lower(call.Host)
	switch {
	case p.role == router:
		x.routerCall()
	case call.Inbound:
		x.inboundCall()
	default:
		x.meshCall()
	}
	return x.out
}

// explaining is the evaluation of one call.
type explaining struct {
	*state
	proxy *proxy
	call  Call
	// authority is the authority of the request in the caller's spelling.
	authority string
	// leftOut lists objects that are left out of the proxy's listeners.
	leftOut []listenerLeftOut
	// claims are the claims of the verified token, for route matches. They are nil without such a
	// token.
	claims map[string]any
	out    Explanation
}

// meshCall explains a call of a sidecar or a gRPC client.
func (x *explaining) meshCall() {
	scope := x.scopeOf(x.proxy)
	if scope.sidecar != nil {
		x.out.Sidecar = scope.sidecar.String()
	}
	e := scope.egressFor(x.call.Port)
	if e == nil {
		x.out.Outcome = fmt.Sprintf("the Sidecar has no egress listener for port %d", x.call.Port)
		return
	}
	svc := e.service(x.call.Host)
	if _, ok := svc.port(x.call.Port); svc != nil && !ok {
		x.out.Outcome = fmt.Sprintf("%s has no port %d that the client sees", excerpt.Object("service", svc.namespace, string(svc.host)), x.call.Port)
		return
	}
	at := place{gateway: meshGateway, port: x.call.Port, service: svc}
	switch {
	case svc != nil:
		x.out.Service = svc.namespace + "/" + string(svc.host)
		if !onPort(svc, x.call.Port) {
			x.out.Outcome = "the port is not HTTP: connections go to the service"
			x.addDestination(envoy.ClusterName(x.call.Port, svc.host), 0)
			return
		}
	case x.proxy.role == grpcClient:
		x.out.Outcome = "the client sees no service of this name, so it gets no listener"
		return
	}
	if x.byVirtualServices(e, at) {
		return
	}
	if svc == nil {
		cluster, allowed := x.unknownTraffic(x.proxy)
		if x.out.Outcome = "the host is unknown and answered with 502"; allowed {
			x.out.Outcome = "the host is unknown and passed on to " + cluster
		}
		return
	}
	x.out.Outcome = "the default route"
	x.addDestination(envoy.ClusterName(x.call.Port, svc.host), 0)
}

// byVirtualServices evaluates the VirtualServices of the most specific host. It reports whether one
// of them has routes for this port and client, even if no rule matches.
func (x *explaining) byVirtualServices(e *egress, at place) bool {
	found := e.virtualServicesOf(x.call.Host)
	for i, v := range found {
		if routes, _ := x.ruleRoutes(x.proxy, v, at); len(routes) == 0 {
			x.consider(v, "it has no HTTP rule for this port and client")
			continue
		}
		x.consider(v, "")
		for _, younger := range found[i+1:] {
			x.consider(younger, "VirtualService "+v.String()+" comes before it")
		}
		if !x.byRules(v, at, everyRule) {
			x.out.VirtualService, x.out.Outcome = v.String(), "none of its rules matches: 404"
		}
		return true
	}
	return false
}

// gatewayCall explains the routing of a call to a router.
func (x *explaining) gatewayCall() {
	type bound struct {
		v  *virtualService
		at place
	}
	byHost := make(map[registry.Hostname][]bound)
	listening := false
	router := x.routerOf(x.proxy)
	routes := router.routes
	for _, name := range slices.Sorted(maps.Keys(routes)) {
		for _, s := range routes[name] {
			if s.port() != x.call.Port {
				continue
			}
			listening = true
			for _, v := range x.virtualServicesFor(s.gateway.String(), x.proxy.namespace) {
				for _, host := range router.chainNamesOf(name).allowed(s, s.hostsOf(v)) {
					byHost[host] = append(byHost[host], bound{v, place{gateway: s.gateway.String(), port: s.port(), tls: s.tls()}})
				}
			}
		}
	}
	if !listening {
		x.out.Outcome = fmt.Sprintf("no Gateway that selects the proxy has an HTTP server on port %d", x.call.Port)
		return
	}
	host, ok := mostSpecific(byHost, x.call.Host)
	if !ok {
		x.out.Outcome = "no VirtualService of a Gateway has the host: 404"
		return
	}
	// Catch-all rules come after the other rules of all VirtualServices.
	for _, which := range []func(*networking.HTTPMatchRequest) bool{specificRule, generalRule} {
		for _, b := range byHost[host] {
			if x.byRules(b.v, b.at, which) {
				x.consider(b.v, "")
				return
			}
		}
	}
	for _, b := range byHost[host] {
		x.consider(b.v, "none of its rules matches")
	}
	x.out.Outcome = "no rule matches: 404"
}

func (x *explaining) consider(v *virtualService, reason string) {
	x.out.VirtualServices = append(x.out.VirtualServices, ConsideredVirtualService{v.String(), reason})
}

func everyRule(*networking.HTTPMatchRequest) bool { return true }

// generalRule reports whether a match accepts every request.
func generalRule(m *networking.HTTPMatchRequest) bool {
	uri := m.GetUri()
	return (uri == nil || uri.GetPrefix() == "/" || uri.GetRegex() == ".*") && m.GetMethod() == nil && m.GetScheme() == nil &&
		m.GetAuthority() == nil && len(m.GetHeaders())+len(m.GetWithoutHeaders())+len(m.GetQueryParams()) == 0
}

func specificRule(m *networking.HTTPMatchRequest) bool { return !generalRule(m) }

// byRules applies the first rule of a VirtualService that the call matches, among rules with a
// match that which accepts. It reports whether there is one.
func (x *explaining) byRules(v *virtualService, at place, which func(*networking.HTTPMatchRequest) bool) bool {
	scope := x.rulesScope(x.proxy, v, at)
	for i, rule := range x.rulesOf(v) {
		matches := rule.GetMatch()
		if len(matches) == 0 {
			matches = []*networking.HTTPMatchRequest{nil}
		}
		for _, m := range matches {
			if !which(m) || !x.passes(m, scope.WholeElements) {
				continue
			}
			alone := proto.CloneOf(rule)
			if alone.Match = nil; m != nil {
				alone.Match = []*networking.HTTPMatchRequest{m}
			}
			if len(scope.Routes([]*networking.HTTPRoute{alone})) == 0 {
				continue // not for this port, gateway or client
			}
			x.decide(v, at, i, rule)
			return true
		}
	}
	return false
}

// decide records the rule that applies.
func (x *explaining) decide(v *virtualService, at place, i int, rule *networking.HTTPRoute) {
	x.out.VirtualService, x.out.Rule = v.String(), fmt.Sprintf("http[%d]", i)
	if rule.GetName() != "" {
		x.out.Rule += fmt.Sprintf(" %q", rule.GetName())
	}
	var parts []string
	switch {
	case rule.GetRedirect() != nil:
		parts = append(parts, "redirected")
	case rule.GetDirectResponse() != nil:
		parts = append(parts, fmt.Sprintf("answered with %d", rule.GetDirectResponse().GetStatus()))
	default:
		parts = append(parts, "sent on")
	}
	if d := rule.GetFault().GetDelay(); d != nil {
		parts = append(parts, fmt.Sprintf("%v %% delayed", d.GetPercentage().GetValue()))
	}
	if a := rule.GetFault().GetAbort(); a != nil {
		parts = append(parts, fmt.Sprintf("%v %% aborted", a.GetPercentage().GetValue()))
	}
	x.out.Outcome = strings.Join(parts, ", ")
	for _, d := range rule.GetRoute() {
		weight := uint32(max(d.GetWeight(), 0))
		if len(rule.GetRoute()) > 1 && weight == 0 {
			continue
		}
		if len(rule.GetRoute()) == 1 {
			weight = 0
		}
		x.addDestination(x.destinationCluster(x.proxy, d.GetDestination(), v.namespace, at.port), weight)
	}
}

// addDestination records a cluster with its DestinationRules and endpoints.
func (x *explaining) addDestination(name string, weight uint32) {
	d := ExplainedDestination{Cluster: name, Weight: weight}
	port, subset, host, _ := envoy.ParseSubsetClusterName(name)
	svc := x.destinationService(x.proxy, host, x.proxy.namespace)
	if svc == nil {
		d.Missing = "the client sees no service of this name"
		x.out.Destinations = append(x.out.Destinations, d)
		return
	}
	m, step := x.ruleOf(x.proxy, svc.host, svc.namespace)
	if m != nil {
		d.FoundIn = step.String()
		for _, r := range m.of {
			d.DestinationRules = append(d.DestinationRules, r.String())
		}
	}
	policies, at := x.policiesOf(x.proxy, svc.host, svc.namespace)
	for _, r := range policies {
		d.FoundIn = cmp.Or(d.FoundIn, at.String())
		d.DestinationRules = append(d.DestinationRules, r.String())
	}
	u, endpoints := x.upstream(x.proxy, name)
	_, hasPort := svc.port(port)
	switch {
	case !hasPort:
		d.Missing = fmt.Sprintf("the service has no port %d", port)
	case subset != "" && !slices.Contains(m.subsetNames(), subset):
		d.Missing = fmt.Sprintf("no DestinationRule that counts for the client has a subset %q", subset)
	case u == nil:
		d.Missing = "the client has no cluster of this name"
	default:
		u.Endpoints = slices.Collect(endpoints.All())
		d.Endpoints = endpointsOf(u)
	}
	x.out.Destinations = append(x.out.Destinations, d)
}
