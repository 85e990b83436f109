// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"fmt"
	"math/rand/v2"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"
	networking "istio.io/api/networking/v1alpha3"
	security "istio.io/api/security/v1beta1"
	typev1beta1 "istio.io/api/type/v1beta1"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
)

// What random objects are made of.
var (
	modelHosts = []string{
		"cart.shop.svc.cluster.local", "web.shop.svc.cluster.local", "orders.billing.svc.cluster.local",
		"api.example.com", "db.example.com", "*.wild.example.com",
	}
	modelPorts      = []uint32{80, 8080, 9000}
	modelNamespaces = []string{"shop", "billing", "ingress", "istio-system"}
	modelGateways   = []struct{ namespace, name string }{{"ingress", "edge"}, {"shop", "edge"}}
	modelLabels     = []map[string]string{{"app": "web"}, {"app": "job"}, {"version": "v1"}, {"app": "edge"}}
)

// onceIn returns true once in n times.
func onceIn(r *rand.Rand, n int) bool { return r.IntN(n) == 0 }

// host returns a host that a policy may name.
func (m *model) host() string {
	return pick(m.rand, append([]string{"cart", "orders", "ghost.example.com", "*.example.com", "*.svc.cluster.local"}, modelHosts...))
}

func (m *model) exportTo() []string {
	return pick(m.rand, [][]string{nil, nil, nil, {"."}, {"*"}, {"shop"}, {"billing", "ingress"}})
}

// object returns a random object: of few names, so that they change often.
func (m *model) object() (kind configstore.GroupVersionKind, name, namespace string, spec proto.Message) {
	name, namespace = fmt.Sprintf("o%d", m.rand.IntN(3)), pick(m.rand, modelNamespaces)
	switch m.rand.IntN(12) {
	case 0, 1, 2:
		return istio.ServiceEntry, name, namespace, m.serviceEntry()
	case 3, 4, 5:
		return istio.VirtualService, name, namespace, m.virtualService()
	case 6, 7:
		return istio.DestinationRule, name, namespace, m.destinationRule()
	case 8:
		g := pick(m.rand, modelGateways)
		return istio.Gateway, g.name, g.namespace, m.gateway()
	case 9:
		return istio.Sidecar, name, namespace, m.sidecar()
	case 10:
		return istio.RequestAuthentication, name, namespace, m.requestAuthentication()
	default:
		return istio.AuthorizationPolicy, name, namespace, m.authorizationPolicy()
	}
}

func (m *model) requestAuthentication() proto.Message {
	r := m.rand
	spec := &security.RequestAuthentication{}
	if onceIn(r, 2) {
		spec.Selector = &typev1beta1.WorkloadSelector{MatchLabels: pick(r, modelLabels)}
	}
	for range r.IntN(3) {
		rule := &security.JWTRule{Issuer: pick(r, []string{"https://a.example.com", "https://b.example.com"})}
		if onceIn(r, 2) {
			rule.Jwks = `{"keys":[{"kty":"EC","crv":"P-256","x":"AQAB","y":"AQAB"}]}`
		}
		spec.JwtRules = append(spec.JwtRules, rule)
	}
	return spec
}

func (m *model) authorizationPolicy() proto.Message {
	r := m.rand
	spec := &security.AuthorizationPolicy{Action: pick(r, []security.AuthorizationPolicy_Action{
		security.AuthorizationPolicy_ALLOW, security.AuthorizationPolicy_DENY, security.AuthorizationPolicy_AUDIT, security.AuthorizationPolicy_CUSTOM,
	})}
	if onceIn(r, 2) {
		spec.Selector = &typev1beta1.WorkloadSelector{MatchLabels: pick(r, modelLabels)}
	}
	if spec.GetAction() == security.AuthorizationPolicy_CUSTOM {
		spec.ActionDetail = &security.AuthorizationPolicy_Provider{
			Provider: &security.AuthorizationPolicy_ExtensionProvider{Name: pick(r, []string{"cart", "nobody"})},
		}
	}
	spec.Rules = []*security.Rule{{To: []*security.Rule_To{{Operation: &security.Operation{Paths: []string{pick(r, []string{"/a", "/b*"})}}}}}}
	return spec
}

func (m *model) serviceEntry() proto.Message {
	r := m.rand
	host := pick(r, modelHosts)
	spec := &networking.ServiceEntry{
		Hosts: []string{host}, ExportTo: m.exportTo(), Location: networking.ServiceEntry_MESH_INTERNAL,
		Resolution: pick(r, []networking.ServiceEntry_Resolution{
			networking.ServiceEntry_STATIC, networking.ServiceEntry_STATIC, networking.ServiceEntry_DNS, networking.ServiceEntry_NONE,
		}),
	}
	if host[0] == '*' {
		spec.Resolution = pick(r, []networking.ServiceEntry_Resolution{networking.ServiceEntry_STATIC, networking.ServiceEntry_NONE})
	}
	for _, port := range modelPorts {
		if onceIn(r, 2) || len(spec.GetPorts()) == 0 {
			spec.Ports = append(spec.Ports, &networking.ServicePort{
				Number: port, Name: fmt.Sprintf("p%d", port), Protocol: pick(r, []string{"HTTP", "HTTP", "GRPC", "TCP", "HTTP2", ""}),
				TargetPort: pick(r, []uint32{0, 0, 9090}),
			})
		}
	}
	if onceIn(r, 3) {
		spec.Addresses = []string{pick(r, []string{"240.1.0.1", "240.1.0.2"})}
	}
	for range r.IntN(4) {
		if spec.GetResolution() == networking.ServiceEntry_NONE {
			break
		}
		e := &networking.WorkloadEntry{
			Address: fmt.Sprintf("10.1.0.%d", r.IntN(6)), Labels: map[string]string{"version": pick(r, []string{"v1", "v2"})},
			Locality: pick(r, []string{"", "eu/a/1", "eu/b/1", "us/a/1"}), Weight: uint32(r.IntN(3)),
			ServiceAccount: pick(r, []string{"", "", "sa"}),
		}
		if onceIn(r, 6) {
			e.Address = "10.9.9.1" // that of a router
			e.Labels["app"] = "edge"
		}
		spec.Endpoints = append(spec.Endpoints, e)
	}
	return spec
}

func (m *model) destination() *networking.Destination {
	d := &networking.Destination{Host: m.host(), Subset: pick(m.rand, []string{"", "", "v1", "v2"})}
	for d.Host[0] == '*' {
		d.Host = m.host()
	}
	if onceIn(m.rand, 3) {
		d.Port = &networking.PortSelector{Number: pick(m.rand, modelPorts)}
	}
	return d
}

func (m *model) virtualService() proto.Message {
	r := m.rand
	spec := &networking.VirtualService{ExportTo: m.exportTo()}
	if !onceIn(r, 6) { // else it is a delegate
		spec.Hosts = []string{m.host()}
		if h := m.host(); onceIn(r, 3) && h != spec.GetHosts()[0] {
			spec.Hosts = append(spec.Hosts, h)
		}
		spec.Gateways = pick(r, [][]string{nil, nil, {"mesh"}, {"ingress/edge"}, {"mesh", "ingress/edge", "shop/edge"}, {"edge"}})
	}
	for range 1 + r.IntN(2) {
		rule := &networking.HTTPRoute{Name: pick(r, []string{"", "named"})}
		switch {
		case len(spec.GetHosts()) > 0 && onceIn(r, 6):
			rule.Delegate = &networking.Delegate{Name: fmt.Sprintf("o%d", r.IntN(3)), Namespace: pick(r, []string{"", "shop", "billing"})}
		case onceIn(r, 8):
			rule.DirectResponse = &networking.HTTPDirectResponse{Status: 503}
		default:
			rule.Route = []*networking.HTTPRouteDestination{{Destination: m.destination()}}
			if onceIn(r, 3) {
				rule.Route[0].Weight = 30
				rule.Route = append(rule.Route, &networking.HTTPRouteDestination{Destination: m.destination(), Weight: 70})
			}
		}
		if onceIn(r, 2) {
			match := &networking.HTTPMatchRequest{Uri: &networking.StringMatch{MatchType: &networking.StringMatch_Prefix{Prefix: pick(r, []string{"/a", "/b"})}}}
			if onceIn(r, 2) {
				match.SourceLabels = pick(r, modelLabels)
			}
			match.SourceNamespace = pick(r, []string{"", "", "shop", "ingress"})
			rule.Match = append(rule.Match, match)
		}
		spec.Http = append(spec.Http, rule)
	}
	if len(spec.GetGateways()) > 0 && onceIn(r, 3) {
		spec.Tcp = []*networking.TCPRoute{{Route: []*networking.RouteDestination{{Destination: m.destination()}}}}
	}
	return spec
}

func (m *model) policy() *networking.TrafficPolicy {
	r := m.rand
	p := &networking.TrafficPolicy{}
	switch r.IntN(4) {
	case 0:
		p.LoadBalancer = &networking.LoadBalancerSettings{LbPolicy: &networking.LoadBalancerSettings_Simple{Simple: networking.LoadBalancerSettings_ROUND_ROBIN}}
	case 1:
		p.LoadBalancer = &networking.LoadBalancerSettings{LbPolicy: &networking.LoadBalancerSettings_ConsistentHash{
			ConsistentHash: &networking.LoadBalancerSettings_ConsistentHashLB{
				HashKey: &networking.LoadBalancerSettings_ConsistentHashLB_HttpHeaderName{HttpHeaderName: "x-user"},
			},
		}}
	case 2:
		p.OutlierDetection = &networking.OutlierDetection{Consecutive_5XxErrors: wrapperspb.UInt32(uint32(1 + r.IntN(3)))}
		if onceIn(r, 2) {
			p.LoadBalancer = &networking.LoadBalancerSettings{LocalityLbSetting: &networking.LocalityLoadBalancerSetting{
				FailoverPriority: []string{pick(r, []string{"version", "app", "topology.kubernetes.io/zone"})},
			}}
		}
	default:
		p.Tls = &networking.ClientTLSSettings{Mode: networking.ClientTLSSettings_ISTIO_MUTUAL}
	}
	return p
}

func (m *model) destinationRule() proto.Message {
	r := m.rand
	spec := &networking.DestinationRule{Host: m.host(), ExportTo: m.exportTo()}
	for _, version := range []string{"v1", "v2"} {
		if onceIn(r, 2) {
			s := &networking.Subset{Name: version, Labels: map[string]string{"version": version}}
			if onceIn(r, 3) {
				s.TrafficPolicy = m.policy()
			}
			spec.Subsets = append(spec.Subsets, s)
		}
	}
	if onceIn(r, 2) {
		spec.TrafficPolicy = m.policy()
	}
	return spec
}

func (m *model) gateway() proto.Message {
	r := m.rand
	spec := &networking.Gateway{Selector: pick(r, []map[string]string{{"app": "edge"}, {"role": "inner"}, nil})}
	server := func(port uint32, protocol, name string, tls *networking.ServerTLSSettings) {
		spec.Servers = append(spec.Servers, &networking.Server{
			Port:  &networking.Port{Number: port, Protocol: protocol, Name: name},
			Bind:  pick(r, []string{"", "", "", "0.0.0.0", "::ffff:0.0.0.0", "::1", "0:0:0:0:0:0:0:1"}),
			Hosts: []string{pick(r, []string{"*", "*.example.com", "cart.shop.svc.cluster.local", "shop/*", "ghost.example.com"})}, Tls: tls,
		})
	}
	if onceIn(r, 2) {
		server(80, "HTTP", "http", nil)
	}
	if onceIn(r, 2) {
		server(443, "HTTPS", "https", &networking.ServerTLSSettings{Mode: networking.ServerTLSSettings_SIMPLE, CredentialName: "cert"})
	}
	if onceIn(r, 3) {
		server(9000, "TCP", "tcp", nil)
	}
	if onceIn(r, 4) {
		server(15443, "TLS", "passing", &networking.ServerTLSSettings{Mode: networking.ServerTLSSettings_AUTO_PASSTHROUGH})
	}
	if len(spec.GetServers()) == 0 {
		server(8080, "HTTP", "alt", nil)
	}
	return spec
}

func (m *model) sidecar() proto.Message {
	r := m.rand
	spec := &networking.Sidecar{}
	if onceIn(r, 2) {
		spec.WorkloadSelector = &networking.WorkloadSelector{Labels: pick(r, modelLabels)}
	}
	hosts := func() []string {
		return pick(r, [][]string{{"*/*"}, {"./*"}, {"shop/*", "billing/*"}, {"*/*.example.com"}, {"~/*"}, {"*/*", "~billing/*"}, {"*/cart.shop.svc.cluster.local"}})
	}
	if onceIn(r, 4) {
		spec.Egress = append(spec.Egress, &networking.IstioEgressListener{
			Port: &networking.SidecarPort{Number: 8080, Protocol: "HTTP", Name: "http"}, Hosts: hosts(),
		})
	}
	if onceIn(r, 5) {
		spec.Egress = append(spec.Egress, &networking.IstioEgressListener{
			Port: &networking.SidecarPort{Number: 15000, Protocol: "HTTP_PROXY", Name: "proxy"}, Bind: "127.0.0.1", Hosts: hosts(),
		})
	}
	spec.Egress = append(spec.Egress, &networking.IstioEgressListener{Hosts: hosts()})
	return spec
}
