// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/durationpb"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/internal/test/routesim"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
)

// A fixed set of words makes it likely that configs and requests meet.
var (
	simNamespaces = []string{"shop", "billing"}
	simHosts      = []registry.Hostname{
		"cart.shop.svc.cluster.local", "orders.shop.svc.cluster.local", "ledger.billing.svc.cluster.local",
		"api.example.com", "a.b.example.com", "Mixed.Example.org",
	}
	simVirtualHosts = []string{
		"cart", "orders", "ledger.billing.svc.cluster.local", "cart.shop.svc.cluster.local", "api.example.com", "*.example.com",
		"*.b.example.com", "*.shop.svc.cluster.local", "ghost.example.net", "*.example.net", "mixed.example.ORG",
	}
	simPorts   = []uint32{80, 8080}
	simPaths   = []string{"/", "/a", "/a/b", "/A/b", "/c", "/c/d"}
	simValues  = []string{"", "one", "on", "two"}
	simHeaders = []string{"x-a", "X-B"}
)

// simulation is a random mesh.
type simulation struct {
	*rand.Rand
	configs  configList
	services []*registry.Service
}

func (s *simulation) chance(percent int) bool { return s.IntN(100) < percent }

func newSimulation(seed uint64) *simulation {
	s := &simulation{Rand: rand.New(rand.NewPCG(seed, 1))}
	for i, host := range simHosts {
		if s.chance(10) {
			continue
		}
		svc := &registry.Service{Hostname: host, DefaultAddress: registry.UnspecifiedAddress, Attributes: registry.ServiceAttributes{Namespace: pick(s.Rand, simNamespaces)}}
		if i < 3 {
			svc.Attributes.Namespace = []string{"shop", "shop", "billing"}[i]
		}
		for _, p := range simPorts {
			if s.chance(80) {
				protocol := pick(s.Rand, []registry.Protocol{registry.ProtocolHTTP, registry.ProtocolGRPC, registry.ProtocolHTTP, registry.ProtocolHTTP2, registry.ProtocolUnsupported, registry.ProtocolTCP})
				svc.Ports = append(svc.Ports, &registry.Port{Number: p, Name: fmt.Sprint("p", p), Protocol: protocol})
			}
		}
		if s.chance(10) {
			svc.Attributes.ExportTo = []registry.Visibility{"."}
		}
		if s.chance(30) {
			svc.DefaultAddress = fmt.Sprintf("10.0.0.%d", i+1)
		}
		s.services = append(s.services, svc)
	}
	for i := range 2 + s.IntN(8) {
		s.addVirtualService(fmt.Sprint("v", i), false)
	}
	s.addVirtualService("d0", true)
	s.addVirtualService("d1", true)
	return s
}

func (s *simulation) addVirtualService(name string, delegate bool) {
	v := &networking.VirtualService{}
	if !delegate {
		for range 1 + s.IntN(3) {
			if h := pick(s.Rand, simVirtualHosts); !slices.Contains(v.Hosts, h) {
				v.Hosts = append(v.Hosts, h)
			}
		}
		v.Gateways = pick(s.Rand, [][]string{nil, nil, {"mesh"}, {"edge", "mesh"}, {"shop/edge", "billing/edge", "mesh"}, {"edge"}, {"shop/other", "edge"}})
	}
	v.ExportTo = pick(s.Rand, [][]string{nil, nil, nil, {"*"}, {"."}, {"billing"}})
	for range 1 + s.IntN(3) {
		v.Http = append(v.Http, s.rule(delegate))
	}
	namespace := pick(s.Rand, simNamespaces)
	s.configs = append(s.configs, &configstore.Config{Meta: configstore.Meta{
		GroupVersionKind: istio.VirtualService, Namespace: namespace, Name: name,
		CreationTimestamp: time.Unix(int64(s.IntN(3)), 0),
	}, Spec: v})
}

func (s *simulation) rule(delegate bool) *networking.HTTPRoute {
	r := &networking.HTTPRoute{}
	for range s.IntN(3) {
		r.Match = append(r.Match, s.match())
	}
	if s.chance(30) {
		r.Timeout = durationpb.New(time.Duration(1+s.IntN(3)) * time.Second)
	}
	if s.chance(30) {
		r.Headers = s.headers()
	}
	switch n := s.IntN(10); {
	case n == 0:
		r.Redirect = &networking.HTTPRedirect{
			Uri: pick(s.Rand, []string{"", "/r"}), Authority: pick(s.Rand, []string{"", "h.com"}), Scheme: pick(s.Rand, []string{"", "https"}),
			RedirectCode: pick(s.Rand, []uint32{0, 302, 308}),
		}
		switch s.IntN(4) {
		case 3:
			r.Redirect.RedirectPort = &networking.HTTPRedirect_DerivePort{DerivePort: networking.HTTPRedirect_FROM_PROTOCOL_DEFAULT}
		case 0:
			r.Redirect.RedirectPort = &networking.HTTPRedirect_Port{Port: pick(s.Rand, []uint32{80, 443, 8080})}
		case 1:
			r.Redirect.RedirectPort = &networking.HTTPRedirect_DerivePort{DerivePort: networking.HTTPRedirect_FROM_REQUEST_PORT}
		}
	case n == 1:
		r.DirectResponse = &networking.HTTPDirectResponse{
			Status: pick(s.Rand, []uint32{200, 404, 503}), Body: &networking.HTTPBody{Specifier: &networking.HTTPBody_String_{String_: "x"}},
		}
	case n < 5 && !delegate:
		r.Headers = nil
		r.Delegate = &networking.Delegate{Name: fmt.Sprint("d", s.IntN(2)), Namespace: pick(s.Rand, []string{"", "shop", "billing"})}
	default:
		s.forward(r)
	}
	return r
}

func (s *simulation) forward(r *networking.HTTPRoute) {
	for range 1 + s.IntN(2) {
		d := &networking.HTTPRouteDestination{Destination: s.destination(), Weight: int32(s.IntN(3))}
		if s.chance(30) {
			d.Headers = s.headers()
		}
		r.Route = append(r.Route, d)
	}
	r.Route[0].Weight++
	if s.chance(20) {
		r.Mirror = s.destination()
		if s.chance(50) {
			r.MirrorPercentage = &networking.Percent{Value: float64(s.IntN(3)) * 12.5}
		}
	}
	switch s.IntN(6) {
	case 0:
		r.Rewrite = &networking.HTTPRewrite{Uri: "/new", Authority: pick(s.Rand, []string{"", "w.com"})}
	case 1:
		r.Rewrite = &networking.HTTPRewrite{UriRegexRewrite: &networking.RegexRewrite{Match: "^/(.)/(.*)$", Rewrite: `/\2/\1`}}
	}
	switch s.IntN(5) {
	case 0:
		r.Retries = &networking.HTTPRetry{}
	case 1:
		r.Retries = &networking.HTTPRetry{Attempts: 3, RetryOn: "5xx"}
	}
	if s.chance(20) {
		r.Fault = &networking.HTTPFaultInjection{
			Delay: &networking.HTTPFaultInjection_Delay{
				HttpDelayType: &networking.HTTPFaultInjection_Delay_FixedDelay{FixedDelay: durationpb.New(time.Second)}, Percentage: &networking.Percent{Value: 25},
			},
			Abort: &networking.HTTPFaultInjection_Abort{
				ErrorType: &networking.HTTPFaultInjection_Abort_GrpcStatus{GrpcStatus: "NOT_FOUND"}, Percentage: &networking.Percent{Value: 50},
			},
		}
	}
}

func (s *simulation) destination() *networking.Destination {
	d := &networking.Destination{
		Host:   pick(s.Rand, []string{"cart", "ORDERS.shop.svc.cluster.local", "ledger.billing.svc.cluster.local", "api.example.com", "mixed.example.org", "nowhere.com"}),
		Subset: pick(s.Rand, []string{"", "", "v1"}),
	}
	if s.chance(30) {
		d.Port = &networking.PortSelector{Number: pick(s.Rand, simPorts)}
	}
	return d
}

func (s *simulation) headers() *networking.Headers {
	ops := &networking.Headers_HeaderOperations{Set: map[string]string{"x-s": "1"}, Add: map[string]string{"x-d": "2"}, Remove: []string{"x-r"}}
	if s.chance(50) {
		ops.Set["Host"] = "set.com"
	}
	if s.chance(50) {
		return &networking.Headers{Request: ops}
	}
	delete(ops.Set, "Host")
	return &networking.Headers{Response: ops}
}

// text is a match of a value; empty ones match every value.
func (s *simulation) text(values ...string) *networking.StringMatch {
	switch v := pick(s.Rand, values); s.IntN(5) {
	case 0, 1:
		return &networking.StringMatch{MatchType: &networking.StringMatch_Exact{Exact: v}}
	case 2:
		if v == "" {
			v = "o"
		}
		return &networking.StringMatch{MatchType: &networking.StringMatch_Prefix{Prefix: v}}
	case 3:
		return &networking.StringMatch{MatchType: &networking.StringMatch_Regex{Regex: pick(s.Rand, []string{".*", "o.+", "(one)?", "/[ac].*"})}}
	default:
		return &networking.StringMatch{}
	}
}

func (s *simulation) match() *networking.HTTPMatchRequest {
	m := &networking.HTTPMatchRequest{IgnoreUriCase: s.chance(20)}
	if s.chance(70) {
		if m.Uri = s.text(simPaths...); m.Uri.MatchType == nil {
			m.Uri = nil
		}
	}
	texts := func(of ...string) map[string]*networking.StringMatch {
		out := map[string]*networking.StringMatch{}
		for _, name := range of {
			if s.chance(50) {
				out[name] = s.text(simValues...)
			}
		}
		return out
	}
	switch s.IntN(6) {
	case 0:
		m.Headers = texts(simHeaders...)
	case 1:
		m.WithoutHeaders = texts(simHeaders...)
	case 2:
		m.QueryParams = texts("q")
	case 3:
		m.Method = &networking.StringMatch{MatchType: &networking.StringMatch_Regex{Regex: "GET|PUT"}}
	case 4:
		m.Headers, m.WithoutHeaders = texts("x-a"), texts("x-a", "X-B")
	}
	switch s.IntN(16) {
	case 0:
		m.Port = pick(s.Rand, simPorts)
	case 1:
		m.SourceLabels = map[string]string{"app": pick(s.Rand, []string{"web", "job"})}
	case 2:
		m.SourceNamespace = pick(s.Rand, simNamespaces)
	case 3:
		m.Gateways = pick(s.Rand, [][]string{{"mesh"}, {"edge"}, {"mesh", "shop/edge"}, {"mesh", "billing/edge", "shop/edge"}})
	case 4:
		m.Authority = &networking.StringMatch{MatchType: &networking.StringMatch_Prefix{Prefix: "cart"}}
	case 5:
		m.Scheme = &networking.StringMatch{MatchType: &networking.StringMatch_Exact{Exact: "http"}}
	}
	return m
}

func (s *simulation) request() routesim.Request {
	r := routesim.Request{
		Port: pick(s.Rand, simPorts), Scheme: "http", Method: pick(s.Rand, []string{"GET", "POST"}), Path: pick(s.Rand, simPaths),
		Authority: pick(s.Rand, []string{
			"cart", "cart.shop", "cart.shop.svc", "cart.shop.svc.cluster.local", "CART.shop.svc.cluster.local.", "orders", "orders.shop:80", "ledger.billing",
			"api.example.com", "a.b.example.com", "x.b.example.com", "x.example.com", "ghost.example.net", "x.example.net", "mixed.example.org:8080",
			"10.0.0.1", "unknown.org", "ledger",
		}),
		Headers: map[string]string{}, Query: map[string]string{},
	}
	for _, h := range []string{"x-a", "x-b"} {
		if s.chance(50) {
			r.Headers[h] = pick(s.Rand, simValues)
		}
	}
	if s.chance(50) {
		r.Query["q"] = pick(s.Rand, simValues)
	}
	return r
}

func (s *simulation) mesh() *routesim.Mesh {
	m := &routesim.Mesh{}
	for _, c := range s.configs {
		m.VirtualServices = append(m.VirtualServices, &routesim.VirtualService{
			Namespace: c.Namespace, Name: c.Name, Created: c.CreationTimestamp, VirtualService: c.Spec.(*networking.VirtualService),
		})
	}
	for _, svc := range s.services {
		out := &routesim.Service{Namespace: svc.Attributes.Namespace, Host: string(svc.Hostname), Address: strings.TrimPrefix(svc.DefaultAddress, registry.UnspecifiedAddress)}
		for _, to := range svc.Attributes.ExportTo {
			out.ExportTo = append(out.ExportTo, string(to))
		}
		for _, p := range svc.Ports {
			out.Ports = append(out.Ports, p.Number)
			if p.Protocol != registry.ProtocolTCP {
				out.HTTP = append(out.HTTP, p.Number)
			}
		}
		m.Services = append(m.Services, out)
	}
	return m
}

// stage starts a control plane of the mesh.
func (s *simulation) stage(tb testing.TB) *scene {
	tb.Helper()
	return stage(tb, traffic.Options{}, s.configs, populate(s.services...))
}

// sidecars adds Sidecars, if any.
func (s *simulation) sidecars(m *routesim.Mesh) {
	for i := range max(s.IntN(5)-2, 0) {
		spec := &networking.Sidecar{}
		if s.chance(40) {
			spec.WorkloadSelector = &networking.WorkloadSelector{Labels: map[string]string{"app": pick(s.Rand, []string{"web", "job"})}}
		}
		for _, port := range pick(s.Rand, [][]uint32{{0}, {0}, {80}, {80, 0}, nil}) {
			l := &networking.IstioEgressListener{}
			if port != 0 {
				l.Port = &networking.SidecarPort{Number: port, Protocol: "HTTP", Name: "http"}
			}
			for range 1 + s.IntN(3) {
				l.Hosts = append(l.Hosts, pick(s.Rand, []string{
					"*/*", "./*", "shop/*", "billing/*", "*/*.example.com", "*/*.example.com", "~*/api.example.com", "*/cart.shop.svc.cluster.local", "*/*.Example.org", "~/*",
				}))
			}
			spec.Egress = append(spec.Egress, l)
		}
		if s.chance(30) {
			spec.OutboundTrafficPolicy = &networking.OutboundTrafficPolicy{Mode: pick(s.Rand, []networking.OutboundTrafficPolicy_Mode{0, 1})}
		}
		out := &routesim.Sidecar{Namespace: pick(s.Rand, append(simNamespaces, routesim.RootNamespace)), Name: fmt.Sprint("s", i), Created: time.Unix(int64(s.IntN(3)), 0), Sidecar: spec}
		m.Sidecars = append(m.Sidecars, out)
		s.configs = append(s.configs, &configstore.Config{Meta: configstore.Meta{
			GroupVersionKind: istio.Sidecar, Namespace: out.Namespace, Name: out.Name, CreationTimestamp: out.Created,
		}, Spec: spec})
	}
}

// gateways adds Gateways with plain HTTP servers.
func (s *simulation) gateways(m *routesim.Mesh) {
	for i := range 1 + s.IntN(3) {
		g := &networking.Gateway{Selector: pick(s.Rand, []map[string]string{nil, {"app": "edge"}, {"app": "edge"}, {"app": "other"}})}
		for range 1 + s.IntN(2) {
			number := pick(s.Rand, simPorts)
			server := &networking.Server{Port: &networking.Port{Number: number, Name: fmt.Sprint("http", len(g.Servers)), Protocol: "HTTP"}}
			for range 1 + s.IntN(2) {
				server.Hosts = append(server.Hosts, pick(s.Rand, []string{
					"*", "*", "*", "*.example.com", "Api.Example.com", "shop/*", "./*", "billing/*.example.com", "*/a.b.example.com", "ghost.example.net", "*.shop.svc.cluster.local",
				}))
			}
			if s.chance(8) {
				server.Tls = &networking.ServerTLSSettings{HttpsRedirect: true}
			}
			g.Servers = append(g.Servers, server)
		}
		out := &routesim.Gateway{
			Namespace: pick(s.Rand, simNamespaces), Name: []string{"edge", "other", "more"}[i], Created: time.Unix(int64(s.IntN(3)), 0), Gateway: g,
		}
		m.Gateways = append(m.Gateways, out)
		s.configs = append(s.configs, &configstore.Config{Meta: configstore.Meta{
			GroupVersionKind: istio.Gateway, Namespace: out.Namespace, Name: out.Name, CreationTimestamp: out.Created,
		}, Spec: g})
	}
}

func (s *simulation) describe() string {
	out := ""
	for _, svc := range s.services {
		out += fmt.Sprintf("%s/%s %v %s;", svc.Attributes.Namespace, svc.Hostname, svc.Attributes.ExportTo, svc.DefaultAddress)
		for _, p := range svc.Ports {
			out += fmt.Sprintf(" %d/%s", p.Number, p.Protocol)
		}
	}
	for _, c := range s.configs {
		out += fmt.Sprintf("\n%s/%s %s %s", c.Namespace, c.Name, c.CreationTimestamp, protojson.Format(c.Spec))
	}
	return out
}
