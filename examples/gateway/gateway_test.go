// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	router "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"go.uber.org/atomic"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/pilotkit/pilotkit/internal/test/authority"
	"github.com/pilotkit/pilotkit/internal/test/envoyproxy"
	"github.com/pilotkit/pilotkit/internal/test/testmain"
	"github.com/pilotkit/pilotkit/internal/xdsbuild"
)

func TestMain(m *testing.M) { testmain.Verify(m) }

const objects = `
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: edge, namespace: ingress}
spec:
  selector: {app: edge}
  servers:
  - {port: {number: 80, name: http, protocol: HTTP}, hosts: ["*"]}
  - {port: {number: 443, name: https, protocol: HTTPS}, hosts: [cart.example.com], tls: {mode: SIMPLE, credentialName: cart}}
  - {port: {number: 443, name: https-members, protocol: HTTPS}, hosts: [members.example.com], tls: {mode: MUTUAL, credentialName: cart}}
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: cart, namespace: shop}
spec:
  hosts: [cart.example.com]
  gateways: [ingress/edge]
  http:
  - {match: [{uri: {exact: /old}}], redirect: {uri: /new}}
  - match: [{uri: {prefix: /v1/}}]
    rewrite: {uri: /}
    headers: {request: {set: {x-by: gateway}}, response: {add: {x-served: "yes"}}}
    route: [{destination: {host: cart.shop.internal}}]
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: members, namespace: shop}
spec: {hosts: [members.example.com], gateways: [ingress/edge], http: [{route: [{destination: {host: cart.shop.internal}}]}]}
---
apiVersion: security.istio.io/v1
kind: AuthorizationPolicy
metadata: {name: admin, namespace: ingress}
spec: {action: DENY, rules: [{to: [{operation: {paths: ["/v1/admin*"]}}]}]}
`

const service = `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: cart, namespace: shop}
spec:
  hosts: [cart.shop.internal]
  ports: [{number: 80, name: http, protocol: HTTP}]
  resolution: STATIC
  endpoints: [{address: 127.0.0.1, ports: {http: PORT}}]
`

// running is a gateway of a directory.
type running struct {
	tb               testing.TB
	dir              string
	plain, encrypted string
	client           *http.Client
	tls              *tls.Config // of the client
	authority        *authority.Authority
}

// start starts a gateway with the objects and an endpoint, and waits until it serves them.
func start(tb testing.TB, endpoint string) *running {
	tb.Helper()
	g := &running{tb: tb, dir: tb.TempDir(), authority: authority.New(tb)}
	g.tls = &tls.Config{RootCAs: g.authority.Pool(), MinVersion: tls.VersionTLS12}
	g.write("objects.yaml", objects)
	g.place(endpoint)
	g.certificate("cart")
	ctx, cancel := context.WithCancel(context.Background())
	ready, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		s := settings{g.dir, g.dir, "ingress", "edge"}
		if err := s.serve(ctx, "127.0.0.1:0", "127.0.0.1:0", func(plain, encrypted string) {
			g.plain, g.encrypted = plain, encrypted
			close(ready)
		}); err != nil {
			tb.Error(err)
		}
	}()
	<-ready
	g.client = &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			MaxIdleConnsPerHost: 64, TLSClientConfig: g.tls,
			DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
				to := g.plain
				if strings.HasSuffix(address, ":443") {
					to = g.encrypted
				}
				return new(net.Dialer).DialContext(ctx, network, to)
			},
		},
	}
	tb.Cleanup(func() {
		g.client.CloseIdleConnections()
		cancel()
		<-ended
	})
	for g.get("http://cart.example.com/v1/").StatusCode != http.StatusOK {
		if tb.Failed() {
			tb.FailNow()
		}
	}
	return g
}

func (g *running) write(name, text string) {
	next := filepath.Join(g.dir, "."+name)
	if err := os.WriteFile(next, []byte(text), 0o600); err != nil {
		g.tb.Error(err)
	}
	if err := os.Rename(next, filepath.Join(g.dir, name)); err != nil {
		g.tb.Error(err)
	}
}

// place sets the endpoint of the service.
func (g *running) place(endpoint string) {
	g.write("service.yaml", strings.ReplaceAll(service, "PORT", endpoint[strings.LastIndexByte(endpoint, ':')+1:]))
}

// certificate writes a credential for clients and servers.
func (g *running) certificate(name string) {
	certificate, key := g.authority.Issue("cart.example.com", "members.example.com")
	g.write(name+".crt", string(certificate))
	g.write(name+".key", string(key))
	g.write(name+".ca", string(g.authority.PEM()))
}

// get returns the response to a request, without its body.
func (g *running) get(address string) *http.Response {
	g.tb.Helper()
	response, err := g.client.Get(address) //nolint:noctx // the client is closed with the test
	if err != nil {
		g.tb.Error(err)
		return &http.Response{}
	}
	_, _ = io.Copy(io.Discard, response.Body)
	_ = response.Body.Close()
	return response
}

// backend says its name and the request that it got.
func backend(tb testing.TB, name string) *httptest.Server {
	tb.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Backend", name+" "+r.Host+" "+r.RequestURI+" "+r.Header.Get("X-By"))
	}))
	tb.Cleanup(s.Close)
	return s
}

// TestGateway: routes, redirects, policies, headers, and TLS by server name.
func TestGateway(t *testing.T) {
	g := start(t, backend(t, "one").URL)
	r := g.get("http://cart.example.com/v1/a%2Fb?q=1")
	if got := r.Header.Get("X-Backend"); got != "one cart.example.com /a%2Fb?q=1 gateway" || r.Header.Get("X-Served") != "yes" {
		t.Errorf("%q, %v", got, r.Header)
	}
	if r := g.get("http://cart.example.com/old"); r.StatusCode != http.StatusMovedPermanently || r.Header.Get("Location") != "http://cart.example.com/new" {
		t.Errorf("%d %v", r.StatusCode, r.Header)
	}
	for path, status := range map[string]int{"/v1/admin": 403, "/v1/x/../admin": 403, "/v1//admin": 200, "/other": 404} {
		if r := g.get("http://cart.example.com" + path); r.StatusCode != status {
			t.Errorf("%s: %d, want %d", path, r.StatusCode, status)
		}
	}
	if r := g.get("http://foreign.example.com/v1/"); r.StatusCode != http.StatusNotFound {
		t.Errorf("a foreign host: %d", r.StatusCode)
	}
	if r := g.get("https://cart.example.com/v1/"); r.StatusCode != http.StatusOK {
		t.Errorf("TLS: %d", r.StatusCode)
	}
	if _, err := g.client.Get("https://members.example.com/"); err == nil { //nolint:noctx,bodyclose // it has to fail
		t.Error("a client without a certificate is served")
	}
	g.client.CloseIdleConnections()
	g.tls.Certificates = []tls.Certificate{g.authority.Pair("spiffe://mesh/ns/shop/sa/member")}
	if r := g.get("https://members.example.com/"); r.StatusCode != http.StatusOK {
		t.Errorf("TLS with a certificate: %d", r.StatusCode)
	}
	if _, err := tls.Dial("tcp", g.encrypted, &tls.Config{ServerName: "foreign.example.com", InsecureSkipVerify: true}); err == nil { //nolint:gosec,noctx // it has to fail
		t.Error("a foreign server name is served")
	}
}

// TestBackendTLS: the endpoints of a service are called by TLS, and only those with the right
// certificate.
func TestBackendTLS(t *testing.T) {
	own := authority.New(t)
	secure := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Client", r.TLS.PeerCertificates[0].DNSNames[0])
	}))
	secure.TLS = &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{own.Pair("spiffe://mesh/ns/shop/sa/cart")}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: own.Pool()}
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	defer secure.Close()

	g := start(t, backend(t, "plain").URL)
	certificate, key := own.Issue("gateway.example.com")
	g.write("cart-backend.crt", string(certificate))
	g.write("cart-backend.key", string(key))
	g.write("cart-backend.ca", string(own.PEM()))
	g.place(secure.URL)
	rule := func(name string) {
		g.write("rule.yaml", `
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: cart, namespace: shop}
spec:
  host: cart.shop.internal
  trafficPolicy: {tls: {mode: MUTUAL, credentialName: cart-backend, sni: cart, subjectAltNames: ["`+name+`"]}}
`)
	}
	rule("spiffe://mesh/ns/shop/sa/cart")
	for g.get("http://cart.example.com/v1/").Header.Get("X-Client") != "gateway.example.com" && !t.Failed() {
	}
	rule("spiffe://mesh/ns/shop/sa/other")
	for g.get("http://cart.example.com/v1/").StatusCode != http.StatusServiceUnavailable && !t.Failed() {
	}
}

// TestEndpointsMove: no request fails while the endpoint of a service moves under load.
func TestEndpointsMove(t *testing.T) {
	backends := []*httptest.Server{backend(t, "one"), backend(t, "two")}
	g := start(t, backends[0].URL)
	stop := make(chan struct{})
	var load sync.WaitGroup
	var done, failed atomic.Int64
	for range 4 {
		load.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if r := g.get("http://cart.example.com/v1/"); r.StatusCode != http.StatusOK {
					failed.Inc()
				}
				done.Inc()
			}
		})
	}
	for i := range 6 {
		name := []string{"two", "one"}[i%2]
		g.place(backends[(i+1)%2].URL)
		for !strings.HasPrefix(g.get("http://cart.example.com/v1/").Header.Get("X-Backend"), name) && !t.Failed() {
		}
	}
	close(stop)
	load.Wait()
	if failed.Load() > 0 {
		t.Errorf("%d of %d requests failed", failed.Load(), done.Load())
	}
}

// startEnvoy starts an Envoy that forwards requests to a server. It returns its address.
func startEnvoy(b *testing.B, to string) string {
	b.Helper()
	cluster, err := envoyproxy.HTTP2Cluster("cart", to)
	if err != nil {
		b.Fatal(err)
	}
	cluster.TypedExtensionProtocolOptions = nil // HTTP/1
	forward := (&xdsbuild.RouteScope{}).DefaultRoute("cart", nil)
	packed, err := anypb.New(&hcm.HttpConnectionManager{
		StatPrefix: "http", HttpFilters: []*hcm.HttpFilter{xdsbuild.HTTPFilter("envoy.filters.http.router", &router.Router{})},
		RouteSpecifier: &hcm.HttpConnectionManager_RouteConfig{RouteConfig: &routev3.RouteConfiguration{
			VirtualHosts: []*routev3.VirtualHost{{Name: "all", Domains: []string{"*"}, Routes: []*routev3.Route{forward}}},
		}},
	})
	if err != nil {
		b.Fatal(err)
	}
	proxy := envoyproxy.Start(b, envoyproxy.Options{
		Clusters: []*clusterv3.Cluster{cluster}, Concurrency: 2,
		Listeners: []*listenerv3.Listener{{
			Name: "http", Address: envoyproxy.Address("127.0.0.1", 0),
			FilterChains: []*listenerv3.FilterChain{{Filters: []*listenerv3.Filter{{
				Name: "http", ConfigType: &listenerv3.Filter_TypedConfig{TypedConfig: packed},
			}}}},
		}},
	})
	proxy.AwaitReady()
	return proxy.Listeners()["http"]
}

// BenchmarkGateway sends requests through the gateway, through the same proxy without routing, and
// through an Envoy.
func BenchmarkGateway(b *testing.B) {
	to := backend(b, "one").URL
	g := start(b, to)
	target, err := url.Parse(to)
	if err != nil {
		b.Fatal(err)
	}
	transport := &http.Transport{MaxIdleConnsPerHost: 100}
	defer transport.CloseIdleConnections()
	direct := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		proxy := httputil.ReverseProxy{Transport: transport, Rewrite: func(p *httputil.ProxyRequest) {
			p.SetURL(target)
			p.SetXForwarded()
		}}
		proxy.ServeHTTP(w, r)
	}))
	defer direct.Close()
	routed := g.plain
	for _, one := range []struct{ name, address string }{{"routed", routed}, {"without routing", strings.TrimPrefix(direct.URL, "http://")}, {"envoy", ""}} {
		b.Run(one.name, func(b *testing.B) {
			address := one.address
			if address == "" {
				address = startEnvoy(b, strings.TrimPrefix(to, "http://"))
				b.ResetTimer()
			}
			g.client.CloseIdleConnections()
			g.plain = address
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if r := g.get("http://cart.example.com/v1/a"); r.StatusCode != http.StatusOK {
						b.Error(fmt.Sprint(r.StatusCode))
					}
				}
			})
		})
	}
}
