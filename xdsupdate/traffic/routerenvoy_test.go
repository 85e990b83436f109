// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	security "istio.io/api/security/v1beta1"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/internal/test/envoyproxy"
	"github.com/pilotkit/pilotkit/internal/test/histories"
	"github.com/pilotkit/pilotkit/internal/test/routecheck"
	"github.com/pilotkit/pilotkit/internal/test/routesim"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/route"

	"google.golang.org/protobuf/types/known/wrapperspb"
	meshconfig "istio.io/api/mesh/v1alpha1"

	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
)

// Targets, hosts and headers as attackers write them.
var (
	hostileTargets = []string{
		"/a//b", "//a", "/a/%2fb", "/a%2Fb", "/a/..;/c", "/a/../c", "/a/..", "/%61", "/%41/b", "/a/./b", `/a\b`, "//", "/a/%2e%2e/c", "/a/%2E/b",
		"/a?q=one&q=two", "/a?q=%6fne", "/a?Q=one", "/a;x=1", "/a%", "/a%00", "/a%zz", "/a#f", "a", "*", "/c/", "/a/b?", "/a?q", "/c%3fx", "/a/b/../../c/d",
		"http://api.example.com/a", "/a/;/b", "/a|b", "/{a}", "/a\"", "/a%5cb", "/..", "/../..//c",
	}
	hostileHosts = []string{
		"API.example.COM", "api.example.com.", "api.example.com.:80", "api.example.com:8080", "api.example.com:x", ":80", "[::1]:80", "a..b.example.com",
		"*.example.com", "api.example.com,ghost.example.net", "api.example.com@ghost.example.net", "ghost.example.net:", "x.b.example.com..",
	}
)

// policies adds random AuthorizationPolicies of a namespace.
func (s *simulation) policies(namespace string) {
	for i := range s.IntN(3) {
		spec := &security.AuthorizationPolicy{Action: pick(s.Rand, []security.AuthorizationPolicy_Action{
			security.AuthorizationPolicy_DENY, security.AuthorizationPolicy_DENY, security.AuthorizationPolicy_ALLOW, security.AuthorizationPolicy_AUDIT,
		})}
		for range 1 + s.IntN(2) {
			rule, of := &security.Rule{}, &security.Operation{}
			if s.chance(60) {
				of.Paths = []string{pick(s.Rand, []string{"/a*", "/c", "*b", "/a/{*}", "/{**}/d", "/A*", "*"})}
			}
			if s.chance(30) {
				of.NotPaths = []string{pick(s.Rand, []string{"/a/b", "/c*"})}
			}
			if s.chance(20) {
				of.Hosts = []string{pick(s.Rand, []string{"api.example.com", "*.example.com", "*:80"})}
			}
			if s.chance(20) {
				of.Methods = []string{"GET"}
			}
			if s.chance(90) {
				rule.To = []*security.Rule_To{{Operation: of}}
			}
			if s.chance(20) {
				rule.From = []*security.Rule_From{{Source: &security.Source{IpBlocks: []string{pick(s.Rand, []string{"127.0.0.0/8", "10.0.0.0/8"})}}}}
			}
			if s.chance(20) {
				rule.When = []*security.Condition{{Key: "request.headers[x-a]", Values: []string{"one", "o*"}}}
			}
			spec.Rules = append(spec.Rules, rule)
		}
		s.configs = append(s.configs, &configstore.Config{Meta: configstore.Meta{
			GroupVersionKind: istio.AuthorizationPolicy, Namespace: namespace, Name: fmt.Sprint("p", i),
		}, Spec: spec})
	}
}

// wireRequest is a request as it is written.
type wireRequest struct {
	routesim.Request
	target string
	hosts  []string
}

func (s *simulation) wireRequest(domains []string) wireRequest {
	r := wireRequest{Request: s.request()}
	if s.chance(70) {
		r.Authority = pick(s.Rand, []string{"api.example.com", "a.b.example.com", "ghost.example.net", "cart.shop.svc.cluster.local"})
	}
	if d := pick(s.Rand, append(domains, "*")); s.chance(40) && d != "*" {
		r.Authority = spelled(s, d)
	}
	if s.chance(15) {
		r.Authority = pick(s.Rand, hostileHosts)
	}
	r.hosts = []string{r.Authority}
	if s.chance(3) {
		r.hosts = append(r.hosts, "ghost.example.net")
	}
	r.target = routecheck.Request(r.Request).Path
	if s.chance(40) {
		r.target = pick(s.Rand, hostileTargets)
	}
	return r
}

// text is the request on the wire.
func (r wireRequest) text() string {
	out := fmt.Sprintf("%s %s HTTP/1.1\r\nContent-Length: 0\r\nConnection: close\r\n", r.Method, r.target)
	for _, h := range r.hosts {
		out += "Host: " + h + "\r\n"
	}
	for name, value := range r.Headers {
		out += name + ": " + value + "\r\n"
	}
	return out + "\r\n"
}

// forRouter returns the request as a server of net/http hands it to a router, and false if it refuses
// it itself.
func (r wireRequest) forRouter(peer netip.Addr) (route.Request, bool) {
	parsed, err := http.ReadRequest(bufio.NewReader(strings.NewReader(r.text())))
	if err != nil || len(r.hosts) > 1 {
		return route.Request{}, false
	}
	out := route.FromHTTP(parsed, 0)
	out.Source, out.Destination = peer, peer
	return out, true
}

// exchange sends a request as it is written. A nil response is a closed connection.
func (r wireRequest) exchange(t *testing.T, conn net.Conn) (response *http.Response, body []byte) {
	t.Helper()
	defer conn.Close()
	_, err := io.WriteString(conn, r.text())
	if err == nil {
		response, err = http.ReadResponse(bufio.NewReader(conn), nil)
	}
	if err != nil {
		return nil, nil
	}
	defer response.Body.Close()
	if body, err = io.ReadAll(response.Body); err != nil {
		t.Fatal(err)
	}
	return response, body
}

func dialed(t *testing.T, address string) net.Conn {
	t.Helper()
	conn, err := net.DialTimeout("tcp", address, 10*time.Second) //nolint:noctx // bounded
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

// routedListener is a listener of a gateway with its routes in it, and requests.
type routedListener struct {
	about    func() string
	listener *listenerv3.Listener
	requests []wireRequest
}

// inline adds a listener with its routes in it, which tell the cluster, and without faults. It listens
// on a free port.
func (m *measurement) inline(l *listenerv3.Listener, configs map[string]*routev3.RouteConfiguration) *listenerv3.Listener {
	m.t.Helper()
	l = proto.CloneOf(l)
	for _, chain := range l.GetFilterChains() {
		for _, f := range chain.GetFilters() {
			manager := &hcm.HttpConnectionManager{}
			if f.GetTypedConfig().UnmarshalTo(manager) != nil {
				continue
			}
			c := proto.CloneOf(configs[manager.GetRds().GetRouteConfigName()])
			c.ResponseHeadersToAdd = append(c.ResponseHeadersToAdd, &core.HeaderValueOption{
				Header: &core.HeaderValue{Key: clusterHeader, Value: "%UPSTREAM_CLUSTER_RAW%"},
			})
			manager.RouteSpecifier = &hcm.HttpConnectionManager_RouteConfig{RouteConfig: c}
			manager.HttpFilters = slices.DeleteFunc(manager.GetHttpFilters(), func(f *hcm.HttpFilter) bool { return f.GetName() == "envoy.filters.http.fault" })
			f.ConfigType = &listenerv3.Filter_TypedConfig{TypedConfig: m.pack(manager)}
			m.cases = append(m.cases, measured{routes: c}) // for the clusters
		}
	}
	l.Name, l.Address = fmt.Sprint(len(m.listeners)), envoyproxy.Address("127.0.0.1", 0)
	m.listeners = append(m.listeners, l)
	return l
}

// addRouted adds the listeners of a gateway of a random mesh.
func (m *measurement) addRouted(seed uint64, requests int) (out []routedListener) {
	m.t.Helper()
	s := newSimulation(seed + 6_000_000)
	s.gateways(s.mesh())
	namespace := pick(s.Rand, simNamespaces)
	s.policies(namespace)
	mesh := &meshconfig.MeshConfig{PathNormalization: &meshconfig.MeshConfig_ProxyPathNormalization{
		Normalization: pick(s.Rand, []meshconfig.MeshConfig_ProxyPathNormalization_NormalizationType{0, 1, 2, 3, 4}),
	}, DefaultConfig: &meshconfig.ProxyConfig{ProxyHeaders: gatewayHeaders(seed)}}
	networks := &meshconfig.MeshNetworks{Networks: map[string]*meshconfig.Network{"one": {Endpoints: []*meshconfig.Network_NetworkEndpoints{
		{Ne: &meshconfig.Network_NetworkEndpoints_FromCidr{FromCidr: pick(s.Rand, []string{"10.0.0.1/8", "fd00::1"})}},
	}}}}
	plane := stage(m.t, traffic.Options{Mesh: mesh, Networks: networks}, s.configs, populate(s.services...))
	defer plane.close()
	client := in("router", namespace, "app=edge")
	configs := plane.routeConfigs(client, portNames("http.")...)
	for _, port := range simPorts {
		l, c := plane.listener(client, fmt.Sprint("0.0.0.0_", port)), configs[fmt.Sprint("http.", port)]
		if l == nil || len(c.GetVirtualHosts()) == 0 {
			continue
		}
		l = m.inline(l, configs)
		var domains []string
		for _, vh := range c.GetVirtualHosts() {
			domains = append(domains, vh.GetDomains()...)
		}
		one := routedListener{about: func() string { return fmt.Sprintf("mesh %d: %s", seed, protojson.Format(l)) }, listener: l}
		for range requests {
			one.requests = append(one.requests, s.wireRequest(domains))
		}
		out = append(out, one)
	}
	return out
}

// gatewayHeaders returns settings that change no decision, and that no Envoy may reject.
func gatewayHeaders(seed uint64) *meshconfig.ProxyConfig_ProxyHeaders {
	return []*meshconfig.ProxyConfig_ProxyHeaders{nil, {
		Server:         &meshconfig.ProxyConfig_ProxyHeaders_Server{Value: "é 1"},
		XForwardedPort: &meshconfig.ProxyConfig_ProxyHeaders_XForwardedPort{Enabled: wrapperspb.Bool(true)},
	}, {
		Server:            &meshconfig.ProxyConfig_ProxyHeaders_Server{Disabled: wrapperspb.Bool(true)},
		RequestId:         &meshconfig.ProxyConfig_ProxyHeaders_RequestId{Disabled: wrapperspb.Bool(true)},
		EnvoyDebugHeaders: &meshconfig.ProxyConfig_ProxyHeaders_EnvoyDebugHeaders{Disabled: wrapperspb.Bool(true)},
	}, {Server: &meshconfig.ProxyConfig_ProxyHeaders_Server{Value: "a\x01b"}}, {}}[seed%5]
}

// looser returns how an Envoy's response to a request differs from the decision of a router; "" if
// the decision is the same, or a stricter one, which strict says.
func looser(l *route.Listener, q route.Request, response *http.Response, body []byte) (problem string, strict bool) {
	d := l.Route(q, nil)
	status, cluster := 0, ""
	if response != nil {
		status, cluster = response.StatusCode, response.Header.Get(clusterHeader)
	} else if d.Outcome == route.Closed {
		return "", false
	}
	if d.Destination == nil {
		if cluster != "" && d.Reason == route.BadRequest {
			return "", true
		}
		if status == d.Status && response.Header.Get("Location") == d.Location || d.Location == "" && status >= 400 && cluster == "" {
			return "", false
		}
		return fmt.Sprintf("status %d, cluster %q, location %q; the router: %d %q (%s)", status, cluster, response.Header.Get("Location"), d.Status, d.Location, d.Reason), false
	}
	if cluster == "" {
		return fmt.Sprintf("status %d; the router: to %s", status, d.Destination.Cluster), false
	}
	var got mirrored
	readable := json.Unmarshal(body, &got) == nil // otherwise the backend refuses the host or the path
	for _, to := range d.Rule.Destinations {
		d = l.Route(q, nil)
		path, _, _ := strings.Cut(d.Path, "?")
		if to.Cluster == cluster && d.Destination.Cluster == cluster && (!readable || got.Path == path && got.Host == d.Authority) {
			return "", false
		}
		q.Random += uint64(max(1, to.Weight))
	}
	return fmt.Sprintf("to %s as %s%s; the router: to %s as %s%s", cluster, got.Host, got.Path, d.Destination.Cluster, d.Authority, d.Path), false
}

// dependsOnVersion reports whether releases of Envoy read the path of a request differently.
func dependsOnVersion(d route.Decision) bool {
	return slices.ContainsFunc(d.Access.Unknown, func(u string) bool { return strings.HasPrefix(u, "the version of Envoy") })
}

// TestRouterIsEnvoy compares the decisions about hostile and ordinary requests, by listeners with
// policies and routes of random meshes, with real Envoys. No decision is looser than theirs.
func TestRouterIsEnvoy(t *testing.T) {
	for _, program := range envoyproxy.Programs(t) {
		t.Run(program.String(), func(t *testing.T) {
			m := &measurement{t: t, backend: startMirror(t)}
			var all []routedListener
			for _, seed := range histories.Seeds(t, 280) {
				all = append(all, m.addRouted(seed, 60)...)
			}
			m.proxy = envoyproxy.Start(t, envoyproxy.Options{Program: program, Listeners: m.listeners, Clusters: m.clusters()})
			m.proxy.AwaitReady()
			at, counts := m.proxy.Listeners(), map[string]int{}
			for _, one := range all {
				l := route.NewListener(route.Made{Message: one.listener})
				for _, r := range one.requests {
					q, taken := r.forRouter(netip.MustParseAddr("127.0.0.1"))
					if !taken {
						counts["refused by net/http"]++
						continue
					}
					response, body := r.exchange(t, dialed(t, at[one.listener.GetName()]))
					problem, strict := looser(l, q, response, body)
					d := l.Route(q, nil)
					if problem != "" && dependsOnVersion(d) {
						counts["another reading of an older Envoy"]++
						continue
					}
					if problem != "" {
						t.Fatalf("request %q: %s\n%s", r.text(), problem, one.about())
					}
					counts[fmt.Sprintf("%s, to a cluster: %t, stricter: %t", d.Reason, d.Destination != nil, strict)]++
				}
			}
			t.Log(counts)
		})
	}
}
