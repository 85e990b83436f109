// SPDX-License-Identifier: Apache-2.0

// Package randomobjects makes random objects of Istio's kinds for tests of properties: objects of a mesh that
// reference each other, and objects of a hostile namespace.
package randomobjects

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

// Hosts returns the hosts of services.
func Hosts() []string {
	return []string{
		"cart.shop.svc.cluster.local", "web.shop.svc.cluster.local", "orders.billing.svc.cluster.local",
		"api.example.com", "db.example.com", "*.wild.example.com",
	}
}

// Ports returns the ports of services.
func Ports() []uint32 { return []uint32{80, 8080, 9000} }

// Gateways returns the names of Gateways.
func Gateways() []struct{ Namespace, Name string } {
	return []struct{ Namespace, Name string }{{"ingress", "edge"}, {"shop", "edge"}}
}

func namespaces() []string { return []string{"shop", "billing", "ingress", "istio-system"} }

func labels() []map[string]string {
	return []map[string]string{{"app": "web"}, {"app": "job"}, {"version": "v1"}, {"app": "edge"}}
}

// Dice choose objects.
type Dice struct{ Rand *rand.Rand }

// onceIn returns true once in n times.
func onceIn(r *rand.Rand, n int) bool { return r.IntN(n) == 0 }

func pick[T any](r *rand.Rand, from []T) T { return from[r.IntN(len(from))] }

// host returns a host that a policy may name.
func (d Dice) host() string {
	return pick(d.Rand, append([]string{"cart", "orders", "ghost.example.com", "*.example.com", "*.svc.cluster.local"}, Hosts()...))
}

func (d Dice) exportTo() []string {
	return pick(d.Rand, [][]string{nil, nil, nil, {"."}, {"*"}, {"shop"}, {"billing", "ingress"}})
}

// Object returns a random object, most are valid: of few names, so that they change often.
func (d Dice) Object() (kind configstore.GroupVersionKind, name, namespace string, spec proto.Message) {
	name, namespace = fmt.Sprintf("o%d", d.Rand.IntN(3)), pick(d.Rand, namespaces())
	switch d.Rand.IntN(12) {
	case 0, 1, 2:
		return istio.ServiceEntry, name, namespace, d.serviceEntry()
	case 3, 4, 5:
		return istio.VirtualService, name, namespace, d.virtualService()
	case 6, 7:
		return istio.DestinationRule, name, namespace, d.destinationRule()
	case 8:
		g := pick(d.Rand, Gateways())
		return istio.Gateway, g.Name, g.Namespace, d.gateway()
	case 9:
		return istio.Sidecar, name, namespace, d.sidecar()
	case 10:
		return istio.RequestAuthentication, name, namespace, d.requestAuthentication()
	default:
		return istio.AuthorizationPolicy, name, namespace, d.authorizationPolicy()
	}
}

func (d Dice) requestAuthentication() proto.Message {
	r := d.Rand
	spec := &security.RequestAuthentication{}
	if onceIn(r, 2) {
		spec.Selector = &typev1beta1.WorkloadSelector{MatchLabels: pick(r, labels())}
	}
	for range r.IntN(3) {
		rule := &security.JWTRule{Issuer: pick(r, []string{"https://a.example.com", "https://b.example.com"})}
		if onceIn(r, 2) {
			rule.Jwks = `{"keys":[{"kty":"EC","crv":"P-256","x":"MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4","y":"4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM"}]}`
		}
		spec.JwtRules = append(spec.JwtRules, rule)
	}
	return spec
}

func (d Dice) peerAuthentication() proto.Message {
	r := d.Rand
	spec := &security.PeerAuthentication{Mtls: &security.PeerAuthentication_MutualTLS{Mode: pick(r, []security.PeerAuthentication_MutualTLS_Mode{
		security.PeerAuthentication_MutualTLS_UNSET, security.PeerAuthentication_MutualTLS_DISABLE, security.PeerAuthentication_MutualTLS_STRICT,
	})}}
	if onceIn(r, 2) {
		spec.Selector = &typev1beta1.WorkloadSelector{MatchLabels: pick(r, labels())}
	}
	return spec
}

func (d Dice) authorizationPolicy() proto.Message {
	r := d.Rand
	spec := &security.AuthorizationPolicy{Action: pick(r, []security.AuthorizationPolicy_Action{
		security.AuthorizationPolicy_ALLOW, security.AuthorizationPolicy_DENY, security.AuthorizationPolicy_AUDIT, security.AuthorizationPolicy_CUSTOM,
	})}
	if onceIn(r, 2) {
		spec.Selector = &typev1beta1.WorkloadSelector{MatchLabels: pick(r, labels())}
	}
	if spec.GetAction() == security.AuthorizationPolicy_CUSTOM {
		spec.ActionDetail = &security.AuthorizationPolicy_Provider{
			Provider: &security.AuthorizationPolicy_ExtensionProvider{Name: pick(r, []string{"cart", "nobody"})},
		}
	}
	spec.Rules = []*security.Rule{{To: []*security.Rule_To{{Operation: &security.Operation{Paths: []string{pick(r, []string{"/a", "/b*"})}}}}}}
	return spec
}

func (d Dice) serviceEntry() proto.Message {
	r := d.Rand
	host := pick(r, Hosts())
	spec := &networking.ServiceEntry{
		Hosts: []string{host}, ExportTo: d.exportTo(), Location: networking.ServiceEntry_MESH_INTERNAL,
		Resolution: pick(r, []networking.ServiceEntry_Resolution{
			networking.ServiceEntry_STATIC, networking.ServiceEntry_STATIC, networking.ServiceEntry_DNS, networking.ServiceEntry_NONE,
		}),
	}
	if host[0] == '*' {
		spec.Resolution = pick(r, []networking.ServiceEntry_Resolution{networking.ServiceEntry_STATIC, networking.ServiceEntry_NONE})
	}
	for _, port := range Ports() {
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

func (d Dice) destination() *networking.Destination {
	out := &networking.Destination{Host: d.host(), Subset: pick(d.Rand, []string{"", "", "v1", "v2"})}
	for out.GetHost()[0] == '*' {
		out.Host = d.host()
	}
	if onceIn(d.Rand, 3) {
		out.Port = &networking.PortSelector{Number: pick(d.Rand, Ports())}
	}
	return out
}

func (d Dice) virtualService() proto.Message {
	r := d.Rand
	spec := &networking.VirtualService{ExportTo: d.exportTo()}
	if !onceIn(r, 6) { // else it is a delegate
		spec.Hosts = []string{d.host()}
		if h := d.host(); onceIn(r, 3) && h != spec.GetHosts()[0] {
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
			rule.Route = []*networking.HTTPRouteDestination{{Destination: d.destination()}}
			if onceIn(r, 3) {
				rule.Route[0].Weight = 30
				rule.Route = append(rule.Route, &networking.HTTPRouteDestination{Destination: d.destination(), Weight: 70})
			}
		}
		if onceIn(r, 2) {
			match := &networking.HTTPMatchRequest{Uri: &networking.StringMatch{MatchType: &networking.StringMatch_Prefix{Prefix: pick(r, []string{"/a", "/b"})}}}
			if onceIn(r, 2) {
				match.SourceLabels = pick(r, labels())
			}
			match.SourceNamespace = pick(r, []string{"", "", "shop", "ingress"})
			rule.Match = append(rule.Match, match)
		}
		spec.Http = append(spec.Http, rule)
	}
	if len(spec.GetGateways()) > 0 && onceIn(r, 3) {
		spec.Tcp = []*networking.TCPRoute{{Route: []*networking.RouteDestination{{Destination: d.destination()}}}}
	}
	return spec
}

func (d Dice) policy() *networking.TrafficPolicy {
	r := d.Rand
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

func (d Dice) destinationRule() proto.Message {
	r := d.Rand
	spec := &networking.DestinationRule{Host: d.host(), ExportTo: d.exportTo()}
	for _, version := range []string{"v1", "v2"} {
		if onceIn(r, 2) {
			s := &networking.Subset{Name: version, Labels: map[string]string{"version": version}}
			if onceIn(r, 3) {
				s.TrafficPolicy = d.policy()
			}
			spec.Subsets = append(spec.Subsets, s)
		}
	}
	if onceIn(r, 2) {
		spec.TrafficPolicy = d.policy()
	}
	return spec
}

func (d Dice) gateway() proto.Message {
	r := d.Rand
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

func (d Dice) sidecar() proto.Message {
	r := d.Rand
	spec := &networking.Sidecar{}
	if onceIn(r, 2) {
		spec.WorkloadSelector = &networking.WorkloadSelector{Labels: pick(r, labels())}
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
