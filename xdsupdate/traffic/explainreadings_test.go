// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/proto"
	security "istio.io/api/security/v1beta1"
	apitype "istio.io/api/type/v1beta1"

	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/internal/test/histories"
	"github.com/pilotkit/pilotkit/internal/test/routesim"
	"github.com/pilotkit/pilotkit/internal/test/tier"
	"github.com/pilotkit/pilotkit/internal/xdsbuild"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
)

// certifiedGateway is guardedGateway for callers with certificates and without.
const certifiedGateway = `Gateway istio-system/edge {"selector": {"app": "edge"}, "servers": [
	{"hosts": ["*"], "port": {"number": 80, "name": "https", "protocol": "HTTPS"}, "tls": {"mode": "OPTIONAL_MUTUAL", "credentialName": "edge"}},
	{"hosts": ["*"], "port": {"number": 9000, "name": "tls", "protocol": "TLS"}, "tls": {"mode": "OPTIONAL_MUTUAL", "credentialName": "edge"}}]}`

// plainCall makes of a random call one that Explain can be told of: with one identity, and without what other filters find
// out. It returns both.
func plainCall(c routesim.Call) (routesim.Call, traffic.Call) {
	c.Metadata = nil
	out := traffic.Call{Port: uint32(c.To.Port()), Source: c.From, Remote: c.Client, Destination: c.To.Addr(), ServerName: c.ServerName, Claims: c.Claims}
	if c.Certificate != nil && len(c.Certificate.URIs) == 0 {
		c.Certificate = nil
	}
	if c.Certificate != nil {
		out.Principal = c.Certificate.URIs[0]
		c.Certificate = &routesim.Certificate{URIs: c.Certificate.URIs[:1]}
	}
	if c.Request != nil {
		name, _, _ := strings.Cut(c.Authority, ":")
		out.Host, out.Method, out.Path, out.Scheme = registry.Hostname(name), c.Method, c.Path, c.Scheme
		out.Headers = map[string]string{"host": c.Authority}
		maps.Copy(out.Headers, c.Headers)
	}
	c.ServerName = strings.ToLower(cmp.Or(c.ServerName, string(out.Host))) // Envoys keep it in lower case
	return c, out
}

// gateFor returns what decides by a listener, and whether callers have to have a certificate.
func (s *scene) gateFor(m proto.Message) (g *routesim.Gate, mutual bool) {
	s.t.Helper()
	chain := m.(*listenerv3.Listener).GetFilterChains()[0]
	if socket := chain.GetTransportSocket(); socket != nil {
		context := &tlsv3.DownstreamTlsContext{}
		s.must(socket.GetTypedConfig().UnmarshalTo(context))
		mutual = context.GetRequireClientCertificate().GetValue()
	}
	return s.gate(m), mutual
}

// admits reports whether the providers that decide about a call let it in, if nothing else refuses it.
func admits(e traffic.Explanation, c routesim.Call) bool {
	for _, p := range e.Decision.Providers {
		answer := providerAnswer(p.Name, c)
		if answer == routesim.Refuses || answer == routesim.Fails && p.Name != "open" {
			return false
		}
	}
	return e.Decision.Allowed
}

// explanations compares decisions as they are explained with those by what is sent.
type explanations struct {
	*scene
	read   *routesim.Authorization
	keys   map[string]*routesim.Key // of issuers, and of strangers
	counts map[string]int
}

// signed returns a call with the token that has its claims, in place of them.
func (x *explanations) signed(c routesim.Call) routesim.Call {
	x.t.Helper()
	if c.Claims == nil || c.Request == nil {
		return c
	}
	signer, _ := c.Claims["iss"].(string)
	if c.Claims["forged"] != nil || x.keys[signer] == nil {
		signer = strangers
	}
	own := *c.Request
	own.Headers = maps.Clone(own.Headers)
	if own.Headers == nil {
		own.Headers = map[string]string{}
	}
	own.Headers["authorization"] = "Bearer " + x.keys[signer].Sign(c.Claims)
	c.Request, c.Claims = &own, nil
	return c
}

// ruleIssuers are the issuers of the rules for tokens.
var ruleIssuers = []string{"iss1", "https://iss/two", "a*b", "unknown"}

// issuerKeys returns a key of each issuer, and one of strangers.
func issuerKeys() map[string]*routesim.Key {
	keys := map[string]*routesim.Key{}
	for _, issuer := range append([]string{strangers}, ruleIssuers...) {
		keys[issuer] = routesim.NewKey(issuer)
	}
	return keys
}

// compare explains a call to a client, which Gate decides by what the client is sent.
func (x *explanations) compare(about string, v ads.View, g *routesim.Gate, c routesim.Call, call traffic.Call) {
	x.t.Helper()
	want, err := g.Decide(x.signed(c))
	x.must(err)
	got := x.policies.Explain(v, call)
	if got.Decision == nil || admits(got, c) != want.Admitted {
		x.t.Fatalf("%s, call %+v, request %+v: sent %+v, explained %v\n%v", about, c, c.Request, want, got, got.Decision)
	}
	x.counts[fmt.Sprintf("HTTP %t, admitted %t, by %s", c.Request != nil, want.Admitted, got.Decision.By.Kind)]++
	if !call.Inbound || !strings.ContainsAny(c.Path, `[\^`) { // of such paths the templates of gRPC servers are others than the documented ones
		x.decides(about, got.Decision, c)
	}
}

// decides: the rule of the AuthorizationPolicy that is named decides alone, too.
func (x *explanations) decides(about string, d *traffic.Decision, c routesim.Call) {
	x.t.Helper()
	if d.By.Kind != istio.AuthorizationPolicy.Kind {
		return
	}
	for _, o := range x.read.Policies {
		if o.Namespace+"/"+o.Name != d.By.Name {
			continue
		}
		var rule int
		if _, err := fmt.Sscanf(d.By.Rule, "spec.rules[%d]", &rule); err != nil {
			x.t.Fatalf("%s: %v: %v", about, d.By, err)
		}
		alone := *x.read
		alone.Providers = nil // one that cannot be asked refuses
		spec := proto.CloneOf(o.AuthorizationPolicy)
		spec.Rules, spec.Selector, spec.TargetRefs = spec.GetRules()[rule:rule+1], nil, nil
		alone.Policies = []*routesim.AuthorizationPolicy{{Namespace: routesim.RootNamespace, Name: o.Name, AuthorizationPolicy: spec}}
		if o.Namespace != routesim.RootNamespace { // accounts without a namespace are of the policy's
			alone.Policies[0].Namespace = o.Namespace
		}
		if alone.Decide(routesim.Proxy{Namespace: alone.Policies[0].Namespace}, c).Admitted != d.Allowed {
			x.t.Fatalf("%s, call %+v, request %+v: %v does not decide so alone: %v", about, c, c.Request, d.By, d)
		}
		return
	}
	x.t.Fatalf("%s: there is no %v", about, d.By)
}

// sent returns a listener of a client, whatever of policies is not as they say.
func (x *explanations) sent(v ads.View, name string) proto.Message {
	x.t.Helper()
	m, _ := x.provided.lookup(v, envoy.ListenerType, name).Build()
	if m == nil {
		x.t.Fatalf("there is no listener %s", name)
	}
	return m
}

func (x *explanations) enough(least int) {
	x.t.Helper()
	x.t.Log(x.counts)
	for about, n := range x.counts {
		if n < least {
			x.t.Errorf("%s %d times: the calls tell little", about, n)
		}
	}
}

// TestExplainedDecisionsOfGateways: what Explain says of a call to a gateway is what the gateway does by what it is sent.
func TestExplainedDecisionsOfGateways(t *testing.T) {
	t.Parallel()
	const namespaces = 10
	calls := explainedCalls(t)
	x := &explanations{counts: map[string]int{}, keys: issuerKeys()}
	sets := map[string]string{}
	for _, issuer := range ruleIssuers {
		sets[issuer] = routesim.KeySet(x.keys[issuer])
	}
	for _, seed := range histories.Seeds(t, 3) {
		d := policyDice{rand.New(rand.NewPCG(seed, 2601))}
		policies, many := d.randomPolicies(namespaces), d.chance(50)
		tokens := d.randomTokenRules(sets, namespaces)
		services := []*registry.Service{testService("istio-system", "echo.example.com", 80)}
		for _, name := range sortedKeys(providerServices) {
			services = append(services, testService("istio-system", registry.Hostname(providerServices[name]), 80))
		}
		objects := append(append(objectsOf(t, certifiedGateway, guardedRoutes), policies...), tokens...)
		x.scene = given(t, traffic.Options{Mesh: authorizationMesh(), MultipleCustomProviders: many}, istio.Schemas(), objects, populate(services...))
		x.read = readPolicies(policies, many)
		for n := range namespaces {
			client := in("router", fmt.Sprint("n", n), "app=edge")
			v := x.view(client)
			listener := x.sent(v, "0.0.0.0_80")
			verifies := strings.Contains(text(listener), "JwtAuthentication")
			http, _ := x.gateFor(listener)
			tcp, _ := x.gateFor(x.sent(v, "0.0.0.0_9000"))
			for range calls {
				c, call := plainCall(d.call(d.chance(30)))
				if c.Claims != nil && d.chance(5) {
					c.Claims = map[string]any{"iss": c.Claims["iss"], "forged": true}
					call.Claims, call.InvalidToken = nil, true
				}
				if !verifies {
					c.Claims = nil // where nobody verifies tokens nobody knows what is in them
				}
				g := http
				if c.Request == nil {
					g = tcp
				}
				about := fmt.Sprintf("scene %d, n%d", seed, n)
				x.compare(about, v, g, c, call)
			}
		}
		x.close()
	}
	x.enough(2)
}

// explainedCalls is how many calls each proxy of a test gets.
func explainedCalls(t *testing.T) int {
	t.Helper()
	return max(6, tier.Share(30)) // fewer tell little
}

// randomTokenRules are RequestAuthentications of namespaces and the root, for tokens of issuers with key sets.
func (d policyDice) randomTokenRules(sets map[string]string, namespaces int) (out configList) {
	add := func(namespace string, n int) {
		for i := range n {
			a := &security.RequestAuthentication{}
			if d.chance(30) {
				a.Selector = &apitype.WorkloadSelector{MatchLabels: map[string]string{"app": pick(d.Rand, []string{"edge", "edge", "other"})}}
			}
			for range pick(d.Rand, []int{0, 1, 1, 2, 3}) {
				a.JwtRules = append(a.JwtRules, d.tokenRule(sets))
			}
			out.add(istio.RequestAuthentication, fmt.Sprintf("%s/a%d", namespace, i), a)
		}
	}
	add(routesim.RootNamespace, pick(d.Rand, []int{0, 0, 0, 1}))
	for n := range namespaces {
		add(fmt.Sprint("n", n), pick(d.Rand, []int{0, 0, 1, 1, 2}))
	}
	return out
}

func (d policyDice) tokenRule(sets map[string]string) *security.JWTRule {
	r := &security.JWTRule{Issuer: pick(d.Rand, append([]string{"iss1"}, ruleIssuers...))}
	r.Jwks = sets[r.GetIssuer()]
	if d.chance(15) {
		r.Jwks, r.JwksUri = "", "https://keys.example.com" // they are never fetched
	}
	if d.chance(15) {
		r.Audiences = []string{pick(d.Rand, []string{"one", "two", "https://one/"})}
	}
	if d.chance(15) {
		r.SpaceDelimitedClaims = []string{"group"}
	}
	return r
}

// TestExplainedDecisionsOfServers: what Explain says of a call to a gRPC server is what the server does by what it is sent.
func TestExplainedDecisionsOfServers(t *testing.T) {
	t.Parallel()
	const namespaces = 10
	calls := explainedCalls(t)
	x := &explanations{counts: map[string]int{}}
	for _, seed := range histories.Seeds(t, 3) {
		d := policyDice{rand.New(rand.NewPCG(seed, 2602))}
		policies := d.randomPolicies(namespaces)
		objects := append(append(configList{}, policies...), d.randomPeers(namespaces)...)
		services := populate()
		for n := range namespaces {
			svc := testService(fmt.Sprint("n", n), registry.Hostname(fmt.Sprintf("s%d.example.com", n)), 80)
			services.services = append(services.services, svc)
			services.place(svc, fmt.Sprintf("10.7.0.%d app=%s %s", n+1, pick(d.Rand, []string{"edge", "other"}), pick(d.Rand, []string{"", "security.istio.io/tlsMode=istio"})))
		}
		x.scene = given(t, traffic.Options{Mesh: authorizationMesh()}, istio.Schemas(), objects, services)
		x.read = readPolicies(policies, false)
		x.read.Paths = routesim.Paths{} // servers take paths as they are
		for n := range namespaces {
			server := netip.AddrPortFrom(netip.MustParseAddr(fmt.Sprintf("10.7.0.%d", n+1)), 80)
			v := x.view(at(in("grpc", fmt.Sprint("n", n)), server.Addr().String()))
			g, mutual := x.gateFor(x.sent(v, xdsbuild.InboundName(server)))
			for range calls {
				c, call := plainCall(d.call(false))
				call.Inbound, call.Destination = true, netip.Addr{}
				c.To, c.Client, c.ServerName, c.Claims = server, c.From, "", nil
				about := fmt.Sprintf("scene %d, n%d", seed, n)
				if mutual && c.Certificate == nil {
					x.closed(about, v, call)
					continue
				}
				if !mutual {
					c.Certificate = nil // plain text has none
				}
				x.compare(about, v, g, c, call)
			}
		}
		x.close()
	}
	x.enough(2)
}

// closed: a caller without a certificate is refused, because of a PeerAuthentication or of the workload's label.
func (x *explanations) closed(about string, v ads.View, call traffic.Call) {
	x.t.Helper()
	d := x.policies.Explain(v, call).Decision
	if d == nil || d.Allowed || d.Answer != traffic.AnswerClosed || d.By.Kind == "" && !strings.Contains(d.Reason, "label security.istio.io/tlsMode: istio") {
		x.t.Fatalf("%s: a caller without a certificate: %v", about, d)
	}
	x.counts["closed, by "+d.By.Kind]++
}

// randomPeers are PeerAuthentications of namespaces and the root.
func (d policyDice) randomPeers(namespaces int) (out configList) {
	mode := func() *security.PeerAuthentication_MutualTLS {
		return &security.PeerAuthentication_MutualTLS{Mode: security.PeerAuthentication_MutualTLS_Mode(d.IntN(4))} //nolint:gosec // there are four
	}
	add := func(namespace string, n int) {
		for i := range n {
			a := &security.PeerAuthentication{Mtls: mode()}
			if d.chance(60) {
				a.Selector = &apitype.WorkloadSelector{MatchLabels: map[string]string{"app": pick(d.Rand, []string{"edge", "other"})}}
				if d.chance(50) {
					a.PortLevelMtls = map[uint32]*security.PeerAuthentication_MutualTLS{80: mode()}
				}
			}
			out.add(istio.PeerAuthentication, fmt.Sprintf("%s/peer%d", namespace, i), a)
		}
	}
	add(routesim.RootNamespace, pick(d.Rand, []int{0, 1}))
	for n := range namespaces {
		add(fmt.Sprint("n", n), pick(d.Rand, []int{0, 1, 1, 2}))
	}
	return out
}
