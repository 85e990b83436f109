// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	jwt "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/jwt_authn/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	issuing "github.com/pilotkit/pilotkit/internal/test/authority"
	"github.com/pilotkit/pilotkit/internal/test/envoyproxy"
	"github.com/pilotkit/pilotkit/internal/test/histories"
	"github.com/pilotkit/pilotkit/internal/test/routecheck"
	"github.com/pilotkit/pilotkit/internal/test/routesim"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/route"
)

// sealedGateway terminates TLS with several certificates, with and without certificates of clients, for
// HTTP and for connections, and passes TLS through.
const sealedGateway = `Gateway ingress/edge {"selector": {"app": "edge"}, "servers": [
	{"port": {"number": 443, "name": "one", "protocol": "HTTPS"}, "hosts": ["a.example.com"], "tls": {"mode": "SIMPLE", "credentialName": "one"}},
	{"port": {"number": 443, "name": "two", "protocol": "HTTPS"}, "hosts": ["*.example.com"], "tls": {"mode": "SIMPLE", "credentialName": "two"}},
	{"port": {"number": 443, "name": "three", "protocol": "HTTPS"}, "hosts": ["m.example.com"], "tls": {"mode": "MUTUAL", "credentialName": "three"}},
	{"port": {"number": 443, "name": "four", "protocol": "TLS"}, "hosts": ["db.example.org"], "tls": {"mode": "MUTUAL", "credentialName": "four"}},
	{"port": {"number": 443, "name": "five", "protocol": "TLS"}, "hosts": ["pass.example.org"], "tls": {"mode": "PASSTHROUGH"}}]}`

// sealedRules are rules for HTTP, of which meshes have some.
var sealedRules = []string{
	`{"match": [{"headers": {"@request.auth.claims.group": {"exact": "one"}}}], "route": [{"destination": {"host": "cart"}}]}`,
	`{"match": [{"withoutHeaders": {"@request.auth.claims.sub": {}}}], "directResponse": {"status": 202}}`,
	`{"match": [{"headers": {"@request.auth.claims.a.b": {"prefix": "o"}}}], "directResponse": {"status": 203}}`,
	`{"match": [{"uri": {"prefix": "/a"}}], "rewrite": {"uri": "/r"}, "route": [{"destination": {"host": "orders"}, "weight": 1}, {"destination": {"host": "cart"}, "weight": 2}]}`,
	`{"match": [{"uri": {"exact": "/C"}, "ignoreUriCase": true}], "redirect": {"uri": "/d"}}`,
	`{"route": [{"destination": {"host": "cart"}}]}`,
}

// sealedPolicies are AuthorizationPolicies, of which meshes have some.
var sealedPolicies = []string{
	`{"action": "DENY", "rules": [{"from": [{"source": {"principals": ["cluster.local/ns/shop/sa/*"]}}], "to": [{"operation": {"paths": ["/a*"]}}]}]}`,
	`{"action": "DENY", "rules": [{"from": [{"source": {"notRequestPrincipals": ["*"]}}], "to": [{"operation": {"paths": ["/c*"]}}]}]}`,
	`{"action": "DENY", "rules": [{"when": [{"key": "request.auth.claims[group]", "values": ["two"]}]}]}`,
	`{"action": "DENY", "rules": [{"when": [{"key": "connection.sni", "values": ["x.example.com"]}]}]}`,
	`{"action": "ALLOW", "rules": [{"from": [{"source": {"requestPrincipals": ["iss1/alice"]}}]}, {"to": [{"operation": {"paths": ["/a/*", "/c"]}}]}, {"when": [{"key": "destination.port", "values": ["443"]}], "from": [{"source": {"namespaces": ["bill"]}}]}]}`,
	`{"action": "DENY", "rules": [{"from": [{"source": {"notPrincipals": ["*"]}}], "to": [{"operation": {"hosts": ["m.example.com"]}}]}]}`,
}

// sealed returns the objects of a random mesh, and makes tokens for it.
func (s *simulation) sealed(t *testing.T, key *routesim.Key) (configList, *routecheck.Tokens) {
	t.Helper()
	some := func(list []string, percent int) (out []string) {
		for _, text := range list {
			if s.chance(percent) {
				out = append(out, text)
			}
		}
		return out
	}
	rules := some(sealedRules[:len(sealedRules)-1], 50)
	s.Shuffle(len(rules), func(i, j int) { rules[i], rules[j] = rules[j], rules[i] })
	texts := []string{
		sealedGateway,
		`VirtualService shop/http {"hosts": ["a.example.com", "*.example.com"], "gateways": ["ingress/edge"], "http": [` + strings.Join(append(rules, sealedRules[len(sealedRules)-1]), ",") + `]}`,
		`VirtualService shop/db {"hosts": ["db.example.org"], "gateways": ["ingress/edge"], "tcp": [{"route": [{"destination": {"host": "cart"}}]}]}`,
		`VirtualService shop/pass {"hosts": ["pass.example.org"], "gateways": ["ingress/edge"], "tls": [{"match": [{"sniHosts": ["pass.example.org"]}], "route": [{"destination": {"host": "sealed"}}]}]}`,
	}
	for i, policy := range some(sealedPolicies, 30) {
		texts = append(texts, fmt.Sprintf("AuthorizationPolicy ingress/p%d %s", i, policy))
	}
	tokens := &routecheck.Tokens{Key: key, Foreign: routesim.NewKey(key.ID), Claims: map[string][]string{"group": {"one", "two"}, "a\x00b": {"one", "two"}, "sub": {"alice", "bob"}}}
	for i, more := range some([]string{`"audiences": ["shop"]`, `"fromHeaders": [{"name": "x-token"}], "forwardOriginalToken": true`, `"fromParams": ["q"]`}, 40) {
		issuer := fmt.Sprint("iss", i+1)
		texts = append(texts, fmt.Sprintf(`RequestAuthentication ingress/t%d {"jwtRules": [{"issuer": %q, "jwks": %q, %s}]}`, i, issuer, routesim.KeySet(key), more))
		p := &jwt.JwtProvider{Issuer: issuer}
		switch {
		case strings.Contains(more, "aud"):
			p.Audiences = []string{"shop"}
		case strings.Contains(more, "fromHeaders"):
			p.FromHeaders = []*jwt.JwtHeader{{Name: "x-token"}}
		default:
			p.FromParams = []string{"q"}
		}
		tokens.Providers = append(tokens.Providers, p)
	}
	if len(tokens.Providers) == 0 {
		tokens = nil
	}
	return objectsOf(t, texts...), tokens
}

// sealedTest compares a router with an Envoy whose secrets are certificates of one authority.
type sealedTest struct {
	*measurement
	ca      *issuing.Authority
	secrets map[string]*tlsv3.TlsCertificate
	clients map[string]tls.Certificate
	counts  map[string]int
}

// sealedMesh is the listener of a random mesh, and its requests.
type sealedMesh struct {
	*simulation
	seed     uint64
	tokens   *routecheck.Tokens
	listener *listenerv3.Listener
	// sent is the listener with the names of its secrets. routed is its decisions, and router those of
	// a gateway that has it alone.
	sent   *listenerv3.Listener
	routed *route.Listener
	router *route.Router
}

func (x *sealedTest) add(seed uint64, key *routesim.Key) sealedMesh {
	x.t.Helper()
	s := newSimulation(seed + 7_000_000)
	objects, tokens := s.sealed(x.t, key)
	var services []*registry.Service
	for _, name := range []registry.Hostname{"cart", "orders", "sealed"} {
		services = append(services, testService("shop", name+".shop.svc.cluster.local", 80))
	}
	plane := stage(x.t, traffic.Options{}, objects, populate(services...))
	defer plane.close()
	client := in("router", "ingress", "app=edge")
	l := plane.listener(client, "0.0.0.0_443")
	sent := x.inline(l, plane.routeConfigs(client, routesim.RoutesOf(l)...))
	sealed := proto.CloneOf(sent)
	for _, chain := range sealed.GetFilterChains() {
		x.seal(chain)
	}
	x.listeners[len(x.listeners)-1] = sealed
	return sealedMesh{
		s, seed, tokens, sealed, sent,
		route.NewListener(route.Made{Message: sent}), route.New(route.Gateway, routecheck.Sent{envoy.ListenerType: {"l": sent}}),
	}
}

// seal puts certificates in the place of the names of secrets.
func (x *sealedTest) seal(chain *listenerv3.FilterChain) {
	x.t.Helper()
	if chain.GetTransportSocket() == nil {
		return
	}
	context := &tlsv3.DownstreamTlsContext{}
	if err := chain.GetTransportSocket().GetTypedConfig().UnmarshalTo(context); err != nil {
		x.t.Fatal(err)
	}
	common := context.GetCommonTlsContext()
	for _, c := range common.GetTlsCertificateSdsSecretConfigs() {
		common.TlsCertificates = append(common.TlsCertificates, x.secret(c.GetName()))
	}
	common.TlsCertificateSdsSecretConfigs = nil
	if combined := common.GetCombinedValidationContext(); combined != nil {
		own := combined.GetDefaultValidationContext()
		if own == nil {
			own = &tlsv3.CertificateValidationContext{}
		}
		own.TrustedCa = inlineBytes(x.ca.PEM())
		common.ValidationContextType = &tlsv3.CommonTlsContext_ValidationContext{ValidationContext: own}
	}
	chain.TransportSocket.ConfigType = &core.TransportSocket_TypedConfig{TypedConfig: x.pack(context)}
}

func (x *sealedTest) secret(name string) *tlsv3.TlsCertificate {
	if x.secrets[name] == nil {
		certificate, key := x.ca.Issue(name)
		x.secrets[name] = &tlsv3.TlsCertificate{CertificateChain: inlineBytes(certificate), PrivateKey: inlineBytes(key)}
	}
	return x.secrets[name]
}

func inlineBytes(data []byte) *core.DataSource {
	return &core.DataSource{Specifier: &core.DataSource_InlineBytes{InlineBytes: data}}
}

// ask sends one random request of a mesh to the Envoy, and compares what comes back.
func (x *sealedTest) ask(m sealedMesh, address string) string {
	x.t.Helper()
	name := pick(m.Rand, []string{"a.example.com", "A.Example.com", "x.example.com", "m.example.com", "m.example.com", "db.example.org", "pass.example.org", "other.test", ""})
	r := wireRequest{Request: m.request()}
	r.Headers, r.Query, r.Method = map[string]string{}, map[string]string{}, "GET"
	if r.Authority = strings.ToLower(name); m.chance(20) || name == "" {
		r.Authority = pick(m.Rand, []string{"a.example.com", "m.example.com", "other.test"})
	}
	claims, invalid := m.tokens.Put(m.Rand, &r.Request)
	r.hosts, r.target = []string{r.Authority}, routecheck.Request(r.Request).Path
	if m.chance(20) && len(r.Query) == 0 {
		r.target = pick(m.Rand, hostileTargets)
	}
	q, taken := r.forRouter(netip.MustParseAddr("127.0.0.1"))
	if !taken {
		return ""
	}
	q.TLS, q.ServerName, q.Claims, q.InvalidToken = true, name, claims, invalid
	config := &tls.Config{ServerName: name, InsecureSkipVerify: true} //nolint:gosec // the test looks at the certificate
	if id := pick(m.Rand, []string{"", "spiffe://cluster.local/ns/shop/sa/web", "spiffe://cluster.local/ns/bill/sa/job"}); id != "" {
		config.Certificates = []tls.Certificate{x.clients[id]}
		q.Principal, q.Certificate = id, true
	}
	conn := tls.Client(dialed(x.t, address), config)
	response, body := r.exchange(x.t, conn)
	presented := ""
	if list := conn.ConnectionState().PeerCertificates; len(list) > 0 {
		presented = list[0].Subject.CommonName
	}
	if problem := x.compare(m, q, presented, response, body); problem != "" {
		return fmt.Sprintf("request %q to %q of %q, claims %v: %s", r.text(), name, q.Principal, claims, problem)
	}
	return ""
}

// compare returns how an exchange differs from the decisions of a router.
func (x *sealedTest) compare(m sealedMesh, q route.Request, presented string, response *http.Response, body []byte) string {
	d, by := m.routed.Route(q, nil), m.router.Handshake(q)
	x.counts[fmt.Sprintf("%s, to a cluster: %t", d.Reason, d.Destination != nil)]++
	if by != nil && presented != "" && !slices.Contains(by.Certificates, presented) {
		return fmt.Sprintf("the certificate is %s; the router: %v", presented, by.Certificates)
	}
	if d.VirtualHost != "" || d.Outcome == route.Answered {
		problem, _ := looser(m.routed, q, response, body)
		if problem != "" && dependsOnVersion(d) {
			x.counts["another reading of an older Envoy"]++
			return ""
		}
		return problem
	}
	if (d.Outcome == route.Closed) != (response == nil) {
		return fmt.Sprintf("response %v; the router: %s to %v", response, d.Reason, d.Destination)
	}
	var got mirrored
	if d.Outcome == route.Forwarded && (json.Unmarshal(body, &got) != nil || (by == nil) != (presented == "backend") ||
		(d.Destination.Host == "sealed.shop.svc.cluster.local") != (by == nil)) {
		return fmt.Sprintf("connection with %s, %s; the router: to %v", presented, body, d.Destination)
	}
	return ""
}

// TestRouterIsEnvoyWithTLS compares decisions about TLS by server name, certificates of clients and
// tokens with real Envoys.
func TestRouterIsEnvoyWithTLS(t *testing.T) {
	key := routesim.NewKey("k")
	for _, program := range envoyproxy.Programs(t) {
		t.Run(program.String(), func(t *testing.T) {
			x := &sealedTest{
				measurement: &measurement{t: t, backend: startMirror(t)}, ca: issuing.New(t), secrets: map[string]*tlsv3.TlsCertificate{},
				clients: map[string]tls.Certificate{}, counts: map[string]int{},
			}
			for _, id := range []string{"spiffe://cluster.local/ns/shop/sa/web", "spiffe://cluster.local/ns/bill/sa/job"} {
				x.clients[id] = x.ca.Pair(id)
			}
			backend := tlsMirror(t, x.ca.Pair("backend"))
			var all []sealedMesh
			for _, seed := range histories.Seeds(t, 200) {
				all = append(all, x.add(seed, key))
			}
			x.cases = append(x.cases, measured{routes: clustersRoutes("outbound|80||cart.shop.svc.cluster.local")})
			clusters := x.clusters()
			sealed, err := envoyproxy.HTTP2Cluster("outbound|80||sealed.shop.svc.cluster.local", backend)
			if err != nil {
				t.Fatal(err)
			}
			sealed.TypedExtensionProtocolOptions = nil
			x.proxy = envoyproxy.Start(t, envoyproxy.Options{Program: program, Listeners: x.listeners, Clusters: append(clusters, sealed)})
			x.proxy.AwaitReady()
			at := x.proxy.Listeners()
			for _, m := range all {
				for range 60 {
					if problem := x.ask(m, at[m.listener.GetName()]); problem != "" {
						t.Fatalf("mesh %d: %s\n%s", m.seed, problem, protojson.Format(m.sent))
					}
				}
			}
			t.Log(x.counts)
		})
	}
}

// clustersRoutes is a route configuration that leads to a cluster.
func clustersRoutes(cluster string) *routev3.RouteConfiguration {
	return &routev3.RouteConfiguration{VirtualHosts: []*routev3.VirtualHost{{Routes: []*routev3.Route{{
		Action: &routev3.Route_Route{Route: &routev3.RouteAction{ClusterSpecifier: &routev3.RouteAction_Cluster{Cluster: cluster}}},
	}}}}}
}

// tlsMirror is startMirror with TLS.
func tlsMirror(t *testing.T, certificate tls.Certificate) (address string) {
	t.Helper()
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{certificate}})
	if err != nil {
		t.Fatal(err)
	}
	backend, closed := startMirror(t), make(chan struct{})
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = json.NewEncoder(w).Encode(mirrored{Host: r.Host, Path: backend})
	})}
	go func() {
		defer close(closed)
		_ = server.Serve(listener)
	}()
	t.Cleanup(func() {
		_ = server.Close()
		<-closed
	})
	return listener.Addr().(*net.TCPAddr).String()
}
