// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/internal/excerpt"
	"github.com/pilotkit/pilotkit/internal/xdsbuild"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/hostname"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/mesh"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/objects"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/route"
)

// explain evaluates one call of a proxy by the resources that it receives.
func (st *state) explain(p *proxy, call Call, leftOut []listenerLeftOut) Explanation {
	x := &explaining{state: st, proxy: p, call: call.complete(), leftOut: leftOut}
	switch {
	case p.Role == objects.Router:
		x.routerCall()
	case call.Inbound:
		x.inboundCall()
	default:
		x.meshCall()
	}
	return x.out
}

// explaining is the explanation of one call.
type explaining struct {
	*state
	proxy *proxy
	call  Call
	// leftOut lists objects that are left out of the proxy's listeners.
	leftOut []listenerLeftOut
	out     Explanation
}

// request returns the call as a request on a connection.
func (c Call) request() route.Request {
	r := route.Request{
		Port: c.Port, TLS: true, ServerName: c.ServerName, Method: c.Method, Scheme: c.Scheme,
		Authority: cmp.Or(c.Headers["host"], string(c.Host)), Path: c.Path, Headers: make(http.Header), Principal: c.Principal,
		Source: c.Source, Remote: c.Remote, Destination: c.Destination, Claims: c.Claims, InvalidToken: c.InvalidToken,
	}
	for name, value := range c.Headers {
		if name != "host" {
			r.Headers.Set(name, value)
		}
	}
	return r
}

// meshCall explains a call of a sidecar or a gRPC client.
func (x *explaining) meshCall() {
	scope, host := x.scopeOf(x.proxy), hostname.Lower(x.call.Host)
	if scope.Sidecar != nil {
		x.out.Sidecar = scope.Sidecar.String()
	}
	e := scope.EgressFor(x.call.Port)
	if e == nil {
		x.out.Outcome = fmt.Sprintf("the Sidecar has no egress listener for port %d", x.call.Port)
		return
	}
	svc := e.Service(host)
	if svc == nil && x.proxy.Role == objects.GRPCClient {
		_, svc = x.grpcService(x.proxy, host, x.call.Port)
	}
	if _, ok := svc.Port(x.call.Port); svc != nil && !ok {
		x.out.Outcome = fmt.Sprintf("%s has no port %d that the client sees", excerpt.Object("service", svc.Namespace, string(svc.Host)), x.call.Port)
		return
	}
	switch {
	case svc != nil:
		x.out.Service = svc.Namespace + "/" + string(svc.Host)
		if !onPort(svc, x.call.Port) {
			x.out.Outcome = "the port is not HTTP: connections go to the service"
			x.addDestination(envoy.ClusterName(x.call.Port, svc.Host), 0)
			return
		}
	case x.proxy.Role == objects.GRPCClient:
		x.out.Outcome = "the client sees no service of this name, so it gets no listener"
		return
	}
	x.meshRoutes(e, svc, host)
}

// meshRoutes explains the routing of a call by an egress listener.
func (x *explaining) meshRoutes(e *mesh.Egress, svc *mesh.Service, host registry.Hostname) {
	name := envoy.HTTPRouteName(x.call.Port)
	switch {
	case x.proxy.Role == objects.GRPCClient:
		name = envoy.ClusterName(x.call.Port, svc.Host)
	case e.Named():
		name = e.RouteName()
	}
	out := x.compiled(x.proxy, envoy.RouteType, name)
	d := out.table.Route(x.call.request())
	if d.VirtualHost == catchAllOpen || d.VirtualHost == catchAllClosed {
		if x.out.Outcome = "the host is unknown and answered with 502"; d.Destination != nil {
			x.out.Outcome = "the host is unknown and passed on to " + d.Destination.Cluster
		}
		return
	}
	by := out.record.virtualServices(d.VirtualHost)
	x.considerInMesh(e.VirtualServicesOf(host), by)
	switch {
	case d.Reason == route.NoRule && len(by) > 0:
		x.out.VirtualService, x.out.Outcome = by[0].String(), "none of its rules matches: 404"
	case d.Destination != nil && d.Rule.Object() == "":
		x.out.Outcome = "the default route"
		x.addDestination(d.Destination.Cluster, 0)
	default:
		x.routed(d)
	}
}

// considerInMesh lists the VirtualServices of a host. The VirtualServices before the one whose
// routes are used have no routes for the call.
func (x *explaining) considerInMesh(found, by []*objects.VirtualService) {
	at := len(found)
	if len(by) > 0 {
		at = slices.Index(found, by[0])
	}
	for i, v := range found {
		switch {
		case i == at:
			x.consider(v, "")
		case at >= 0 && i > at:
			x.consider(v, "VirtualService "+by[0].String()+" comes before it")
		default:
			x.consider(v, "it has no HTTP rule for this port and client")
		}
	}
}

func (x *explaining) consider(v *objects.VirtualService, reason string) {
	x.out.VirtualServices = append(x.out.VirtualServices, ConsideredVirtualService{v.String(), reason})
}

// routed records the rule that decides, and its action.
func (x *explaining) routed(d route.Decision) {
	if d.Rule == nil {
		x.out.Outcome = fmt.Sprintf("%s: %d", d.Reason, d.Status)
		return
	}
	if d.Rule.Kind == istio.VirtualService.Kind {
		x.out.VirtualService = d.Rule.Object()
		x.out.Rule = strings.TrimPrefix(d.Rule.Field, "spec.")
		if d.Rule.Rule != "" {
			x.out.Rule += fmt.Sprintf(" %q", d.Rule.Rule)
		}
	}
	var parts []string
	switch {
	case d.Location != "":
		parts = append(parts, "redirected")
	case d.Outcome == route.Answered && d.Destination == nil:
		parts = append(parts, fmt.Sprintf("answered with %d", d.Status))
	default:
		parts = append(parts, "sent on")
	}
	if f := d.Rule.Fault; f != nil && f.Delay > 0 {
		parts = append(parts, percent(f.DelayShare)+" delayed")
	}
	if f := d.Rule.Fault; f != nil && (f.AbortStatus != 0 || f.AbortGRPC != 0) {
		parts = append(parts, percent(f.AbortShare)+" aborted")
	}
	x.out.Outcome = strings.Join(parts, ", ")
	for _, to := range d.Rule.Destinations {
		x.addDestination(to.Cluster, to.Weight)
	}
}

func percent(millionths uint32) string { return fmt.Sprintf("%v %%", float64(millionths)/10_000) }

// explainedKey identifies a resource of a proxy.
type explainedKey struct {
	proxy         *proxy
	typeURL, name string
}

// explained is a compiled resource, a route configuration or a listener, with its record and the
// problems of its parts.
type explained struct {
	table    *route.Table
	listener *route.Listener
	record   *made
	problems []error
}

// compiled returns a compiled resource of a proxy. It is kept for the next explanation, unless
// objects are left out of it for a client, or it depends on endpoints, as the listeners of gRPC
// servers do.
func (x *explaining) compiled(p *proxy, typeURL, name string) explained {
	build := func() explained {
		m, record, problems := x.recorded(p, typeURL, name)
		return explained{route.NewTable(m), route.NewListener(m), record, problems}
	}
	if p.leaving != nil || p.Role == objects.GRPCClient && typeURL == envoy.ListenerType {
		return build()
	}
	return x.explanations.Get(explainedKey{p, typeURL, name}, build)
}

// addDestination records a cluster with its DestinationRules and endpoints.
func (x *explaining) addDestination(name string, weight uint32) {
	d := ExplainedDestination{Cluster: name, Weight: weight}
	defer func() { x.out.Destinations = append(x.out.Destinations, d) }()
	port, subset, host, ok := envoy.ParseSubsetClusterName(name)
	if !ok { // an SNI cluster, which sidecars of other networks ask for by name
		d.Endpoints = x.endpoints(name)
		return
	}
	svc := x.destinationService(x.proxy, host, x.proxy.Namespace)
	if svc == nil {
		d.Missing = "the client sees no service of this name"
		return
	}
	m, step := x.RuleOf(&x.proxy.Proxy, svc.Host, svc.Namespace)
	if m != nil {
		d.FoundIn = step.String()
		for _, r := range m.Of {
			d.DestinationRules = append(d.DestinationRules, r.String())
		}
	}
	policies, at := x.PoliciesOf(&x.proxy.Proxy, svc.Host, svc.Namespace)
	for _, r := range policies {
		d.FoundIn = cmp.Or(d.FoundIn, at.String())
		d.DestinationRules = append(d.DestinationRules, r.String())
	}
	_, hasPort := svc.Port(port)
	switch {
	case !hasPort:
		d.Missing = fmt.Sprintf("the service has no port %d", port)
	case subset != "" && !slices.Contains(m.SubsetNames(), subset):
		d.Missing = fmt.Sprintf("no DestinationRule that counts for the client has a subset %q", subset)
	case !x.coversCluster(x.proxy, name):
		d.Missing = "the client has no cluster of this name"
	default:
		d.Endpoints = x.endpoints(name)
	}
}

// endpoints returns the endpoints of a cluster, by priority.
func (x *explaining) endpoints(cluster string) (out []ExplainedEndpoint) {
	at := x.clusterPlaceOf(x.proxy, cluster)
	found := route.NewEndpoints(cluster, x.cluster(x.proxy, cluster, at), x.assignment(x.proxy, cluster, at))
	if found == nil {
		return nil
	}
	for _, e := range found.List {
		out = append(out, ExplainedEndpoint{Address: e.Address, Locality: e.Locality, Priority: e.Priority, Weight: e.Weight})
	}
	slices.SortStableFunc(out, func(a, b ExplainedEndpoint) int { return cmp.Compare(a.Priority, b.Priority) })
	return out
}

// inboundCall explains a call to a gRPC server.
func (x *explaining) inboundCall() {
	if x.proxy.Role != objects.GRPCClient {
		x.out.Outcome = "what comes to sidecars is not configured here: no policy is enforced"
		return
	}
	if len(x.proxy.server) == 0 && x.call.Destination.IsValid() {
		server := *x.proxy // the server is not connected, or had no workload at its address when it connected
		server.server = []string{x.call.Destination.Unmap().String()}
		x.proxy = &server
	}
	for _, address := range x.proxy.server {
		at, err := netip.ParseAddr(address)
		if err != nil || x.call.Port > math.MaxUint16 || x.call.Destination.IsValid() && at != x.call.Destination.Unmap() {
			continue
		}
		name := xdsbuild.InboundName(netip.AddrPortFrom(at, uint16(x.call.Port))) //nolint:gosec // it is not greater
		of, problems := x.without(func(listener string) bool {
			asked, _, ok := xdsbuild.ParseInboundName(listener)
			return ok && asked.Port() == uint16(x.call.Port) //nolint:gosec // it is not greater
		})
		if out := x.compiled(of, envoy.ListenerType, name); out.listener != nil {
			x.call.Destination = at
			x.call.Remote = x.call.Source // gRPC servers ignore forwarding proxies (gRFC A41)
			x.served(out.listener, append(problems, out.problems...))
			return
		}
	}
	x.out.Outcome = fmt.Sprintf("no service of the namespace %q sends calls to port %d at an address of the server, so that it gets no listener", x.proxy.Namespace, x.call.Port)
}

// served explains a call to a gRPC server by its listener.
func (x *explaining) served(l *route.Listener, problems []error) {
	all := x.workloads.At(x.proxy.Namespace, x.proxy.server)
	i := slices.IndexFunc(all, func(w mesh.Workload) bool { return servesOn(w, x.call.Port) })
	x.out.Service = all[i].Service.Attributes.Namespace + "/" + string(all[i].Service.Hostname)
	by, _ := x.mutualTLSBy(x.proxy.Namespace, labelsOf(all), x.call.Port)
	words := "the server takes mutual TLS alone, and the caller has no certificate"
	if by.Mode == objects.Permissive {
		words = "the workload has the label " + tlsModeLabel + ": " + tlsModeIstio + ", so that " + words
	}
	r := x.call.request()
	d := l.Route(r, nil)
	if d.Reason == route.UnexpectedTLS {
		r.TLS = false
		d = l.Route(r, nil)
	}
	x.decided(d, decider{modeRule(by), words}, problems)
	if x.out.Decision.Allowed {
		x.out.Outcome = outcomeServed
	}
}

// modeRule returns the field that sets a mode, or zero if the mode is a default.
func modeRule(m objects.PeerMode) PolicyRule {
	switch {
	case m.Of == nil:
		return PolicyRule{}
	case m.Port:
		return PolicyRule{istio.PeerAuthentication.Kind, m.Of.String(), "spec.portLevelMtls"}
	default:
		return PolicyRule{istio.PeerAuthentication.Kind, m.Of.String(), "spec.mtls"}
	}
}

// routerCall explains a call to a router by its listeners.
func (x *explaining) routerCall() {
	x.out.AuthorizationPolicies = x.askedFirst(x.proxy)
	port := x.proxy.listeningPort(x.call.Port)
	listening := false
	for _, name := range slices.Sorted(maps.Keys(x.routerOf(x.proxy).listeners)) {
		l := x.routerOf(x.proxy).listeners[name]
		if bind, err := netip.ParseAddr(l.Bind); l.Port != port || err == nil && !bind.IsUnspecified() && x.call.Destination.IsValid() && bind != x.call.Destination {
			continue
		}
		of, problems := x.without(func(listener string) bool { return listener == name })
		out := x.compiled(of, envoy.ListenerType, name)
		if out.listener == nil {
			continue
		}
		listening = true
		r := x.call.request()
		r.TLS = out.listener.TLS
		var routes explained
		d := out.listener.Route(r, func(name string) *route.Table {
			routes = x.compiled(x.proxy, envoy.RouteType, name)
			return routes.table
		})
		if d.Reason == route.NoFilterChain {
			continue
		}
		if d.Reason != route.LeftOut { // ignore other problems of the listener
			out.problems = x.protectionOf(of).problems
		}
		x.decided(d, decider{mutual: "the server of the Gateway takes connections of callers with a certificate alone, and the caller has none"},
			append(problems, out.problems...))
		x.passed(d, routes.record)
		return
	}
	x.out.Outcome = fmt.Sprintf("no server of a Gateway takes such connections on port %d: they are closed", x.call.Port)
	if !listening {
		x.out.Outcome = fmt.Sprintf("no Gateway that selects the proxy has an HTTP server on port %d", x.call.Port)
	}
}

// passed explains the routing of a call that the policies of a router allow.
func (x *explaining) passed(d route.Decision, record *made) {
	switch {
	case !x.out.Decision.Allowed:
	case record == nil: // a connection without HTTP
		x.out.Outcome = outcomePassedOn
		for _, to := range d.Rule.Destinations {
			x.addDestination(to.Cluster, to.Weight)
		}
	case d.Reason == route.NoVirtualHost:
		x.out.Outcome = "no VirtualService of a Gateway has the host: 404"
	case d.Reason == route.NoRule:
		for _, v := range record.virtualServices(d.VirtualHost) {
			x.consider(v, "none of its rules matches")
		}
		x.out.Outcome = "no rule matches: 404"
	case d.Reason == route.RedirectedToTLS:
		x.out.Outcome = "redirected to HTTPS, which the Gateway demands"
	default:
		x.routed(d)
		for _, v := range record.virtualServices(d.VirtualHost) {
			if v.String() == x.out.VirtualService {
				x.consider(v, "")
			}
		}
	}
}
