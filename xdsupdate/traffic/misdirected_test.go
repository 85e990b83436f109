// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/internal/test/histories"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

// tlsServer is a server of a Gateway, in YAML: its port is 443, its certificate and the
// name of its port are named after it. Settings are in the form of JSON.
type tlsServer struct {
	name, protocol, settings string
	hosts                    []string
}

func (s tlsServer) yaml() string {
	settings := s.settings
	if settings == "" {
		settings = "mode: SIMPLE"
	}
	if !strings.Contains(settings, "PASSTHROUGH") {
		settings += ", credentialName: " + s.name
	}
	protocol := s.protocol
	if protocol == "" {
		protocol = "HTTPS"
	}
	return fmt.Sprintf("  - {port: {number: 443, name: %s, protocol: %s}, hosts: [%s], tls: {%s}}\n", s.name, protocol, quoted(s.hosts), settings)
}

func quoted(list []string) string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = strconv.Quote(s)
	}
	return strings.Join(out, ", ")
}

func tlsGateway(name string, servers ...tlsServer) string {
	text := "---\napiVersion: networking.istio.io/v1\nkind: Gateway\nmetadata: {name: " + name + ", creationTimestamp: 2024-01-01T00:00:00Z}\nspec:\n  selector: {app: edge}\n  servers:\n"
	for _, s := range servers {
		text += s.yaml()
	}
	return text
}

// answering is a VirtualService whose requests are answered with 200.
func answering(name, gateway string, hosts ...string) string {
	return fmt.Sprintf(`
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: %s}
spec: {hosts: [%s], gateways: [%s], http: [{directResponse: {status: 200}}]}
`, name, quoted(hosts), gateway)
}

// passing is a VirtualService that passes connections on: kind is "tls" or "tcp".
func passing(name, gateway, kind string, hosts ...string) string {
	match := ""
	if kind == "tls" {
		match = "match: [{sniHosts: [" + quoted(hosts) + "]}], "
	}
	return fmt.Sprintf(`
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: %s}
spec: {hosts: [%s], gateways: [%s], %s: [{%sroute: [{destination: {host: cart.example.com, port: {number: 1}}}]}]}
`, name, quoted(hosts), gateway, kind, match)
}

// answerTo is the status of the answer to a request for a host.
func answerTo(rc *routev3.RouteConfiguration, host string) int {
	routes := hostOf(rc, host).GetRoutes()
	if len(routes) == 0 {
		return http.StatusNotFound
	}
	return int(routes[0].GetDirectResponse().GetStatus())
}

// TestMisdirected: what a server of a Gateway answers to requests for hosts, those of its
// neighbours on the port among them.
func TestMisdirected(t *testing.T) {
	one := tlsServer{name: "one", hosts: []string{"a.example.com", "b.example.com"}}
	two := tlsServer{name: "two", hosts: []string{"c.example.com"}}
	wild := tlsServer{name: "wild", hosts: []string{"*.example.com"}}
	every := tlsServer{name: "every", hosts: []string{"*"}}
	with := func(s tlsServer, settings string) tlsServer { s.settings = settings; return s }
	passed := tlsServer{name: "passed", protocol: "TLS", settings: "mode: PASSTHROUGH", hosts: []string{"*.pass.test"}}
	for _, tc := range []struct {
		name    string
		objects string
		server  string
		want    map[string]int
	}{
		{
			"two servers", tlsGateway("edge", one, two) + answering("all", "edge", "a.example.com", "c.example.com"), "one",
			map[string]int{"a.example.com": 200, "b.example.com": 404, "c.example.com": 421, "d.example.com": 404},
		},
		{
			"two Gateways", tlsGateway("edge", one) + tlsGateway("zone", two) + answering("all", "edge", "*"), "one",
			map[string]int{"a.example.com": 200, "c.example.com": 421, "d.example.com": 404},
		},
		{
			"a wildcard and a host below it", tlsGateway("edge", wild) + tlsGateway("zone", two) + answering("all", "edge", "*.example.com"), "wild",
			map[string]int{"a.example.com": 200, "c.example.com": 421, "x.c.example.com": 200, "other.test": 404},
		},
		{
			"the host below it, of which a wildcard covers what it has no routes for", tlsGateway("edge", one, wild) + answering("all", "edge", "a.example.com"), "one",
			map[string]int{"a.example.com": 200, "b.example.com": 404, "c.example.com": 421, "example.com": 404},
		},
		{
			"the server of all hosts", tlsGateway("edge", every, wild, one) + answering("all", "edge", "*"), "every",
			map[string]int{"a.example.com": 421, "z.example.com": 421, "other.test": 200},
		},
		{
			"beside the server of all hosts", tlsGateway("edge", every, wild, one) + answering("all", "edge", "a.example.com"), "one",
			map[string]int{"a.example.com": 200, "b.example.com": 404, "z.example.com": 421, "other.test": 421},
		},
		{
			"routes for the very host, bound to the Gateway", tlsGateway("edge", wild, two) + answering("all", "edge", "c.example.com"), "wild",
			map[string]int{"c.example.com": 200, "d.example.com": 404},
		},
		{
			"and a host below it", tlsGateway("edge", tlsServer{name: "wide", hosts: []string{"*.com"}}, wild, two) + answering("all", "edge", "*.example.com"), "wide",
			map[string]int{"c.example.com": 421, "d.example.com": 200, "other.com": 404},
		},
		{
			"and if its server asks for certificates", tlsGateway("edge", wild, with(two, "mode: MUTUAL")) + answering("all", "edge", "c.example.com"), "wild",
			map[string]int{"c.example.com": 421, "d.example.com": 404},
		},
		{
			"or may be shown some", tlsGateway("edge", wild, with(two, "mode: OPTIONAL_MUTUAL")) + answering("all", "edge", "*.c.example.com", "c.example.com"), "wild",
			map[string]int{"c.example.com": 421, "x.c.example.com": 200},
		},
		{
			"of other authorities", tlsGateway("edge", with(wild, "mode: MUTUAL"), with(two, "mode: MUTUAL")) + answering("all", "edge", "c.example.com"), "wild",
			map[string]int{"c.example.com": 421},
		},
		{
			"of other names", tlsGateway("edge", with(wild, "mode: MUTUAL, caCertCredentialName: roots"), with(two, "mode: MUTUAL, caCertCredentialName: roots, subjectAltNames: [x]")) +
				answering("all", "edge", "c.example.com"), "wild",
			map[string]int{"c.example.com": 421},
		},
		{
			"of the same", tlsGateway("edge", with(wild, "mode: MUTUAL, caCertCredentialName: roots"), with(two, "mode: MUTUAL, caCertCredentialName: roots")) +
				answering("all", "edge", "c.example.com"), "wild",
			map[string]int{"c.example.com": 200},
		},
		{
			"nor one of which an older server has a host", tlsGateway("edge", one, tlsServer{name: "late", hosts: []string{"b.example.com", "c.example.com"}}), "one",
			map[string]int{"c.example.com": 404},
		},
		{
			"names that are passed on", tlsGateway("edge", one, passed) + passing("passed", "edge", "tls", "x.pass.test"), "one",
			map[string]int{"x.pass.test": 421, "y.pass.test": 404},
		},
		{
			"decrypted and passed on", tlsGateway("edge", one, tlsServer{name: "raw", protocol: "TLS", hosts: []string{"raw.test"}}) + passing("raw", "edge", "tcp", "raw.test"), "one",
			map[string]int{"raw.test": 421},
		},
		{
			"to nowhere", tlsGateway("edge", one, tlsServer{name: "raw", protocol: "TLS", hosts: []string{"raw.test"}}), "one",
			map[string]int{"raw.test": 404},
		},
		{
			"another port", strings.Replace(tlsGateway("edge", one, two), "number: 443, name: two", "number: 8443, name: two", 1), "one",
			map[string]int{"c.example.com": 404},
		},
		{
			"another address", tlsGateway("edge", one) + strings.Replace(tlsGateway("zone", two), "hosts:", "bind: 10.9.9.1, hosts:", 1), "one",
			map[string]int{"c.example.com": 404},
		},
		{
			"another router", tlsGateway("edge", one) + strings.Replace(tlsGateway("zone", two), "app: edge", "app: other", 1), "one",
			map[string]int{"c.example.com": 404},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t, traffic.Options{})
			s.apply(tc.objects)
			rc := s.routes(node("router"), "https.443."+tc.server+".edge.shop")
			for _, host := range slices.Sorted(maps.Keys(tc.want)) {
				if got := answerTo(rc, host); got != tc.want[host] {
					t.Errorf("%s is answered with %d, want %d", host, got, tc.want[host])
				}
				if n := len(hostOf(rc, host).GetRoutes()); n > 1 {
					t.Errorf("%s has %d routes", host, n)
				}
			}
		})
	}
}

// TestMisdirectedChanges: a change of a server's hosts is sent to the other TLS servers of
// its port, and to no others.
func TestMisdirectedChanges(t *testing.T) {
	s := newScene(t, traffic.Options{})
	other := strings.ReplaceAll(tlsGateway("other", tlsServer{name: "far", hosts: []string{"far.test"}}), "443", "8443")
	plain := strings.Replace(plainGateway, "name: edge", "name: plain", 1)
	s.apply(plain + tlsGateway("edge", tlsServer{name: "one", hosts: []string{"a.test"}}) +
		tlsGateway("near", tlsServer{name: "two", hosts: []string{"b.test"}}) + tlsGateway("next", tlsServer{name: "three", hosts: []string{"c.test"}}) + other)
	c := s.connect(node("router"))
	names := []string{"http.80", "https.443.one.edge.shop", "https.443.two.near.shop", "https.443.three.next.shop", "https.8443.far.other.shop"}
	s.must(c.Subscribe(envoy.RouteType, names...))
	s.await(c, func(st xdstest.State) bool { return len(st.Names(envoy.RouteType)) == len(names) })
	sent := func(objects string) []string {
		t.Helper()
		before := len(c.Responses())
		s.apply(objects)
		s.must(s.server.WaitApplied(t.Context(), nil))
		var out []string
		for _, r := range c.Responses()[before:] {
			for _, resource := range r.Resources {
				out = append(out, resource.Name)
			}
		}
		return slices.Sorted(slices.Values(out))
	}
	neighbours := []string{"https.443.one.edge.shop", "https.443.three.next.shop"}
	if diff := cmp.Diff(neighbours, sent(tlsGateway("near", tlsServer{name: "two", hosts: []string{"b.test", "d.test"}}))); diff != "" {
		t.Errorf("sent for another host (-want +got):\n%s", diff)
	}
	s.apply(tlsGateway("passed", tlsServer{name: "passed", protocol: "TLS", settings: "mode: PASSTHROUGH", hosts: []string{"*.pass.test"}}))
	all := []string{"https.443.one.edge.shop", "https.443.three.next.shop", "https.443.two.near.shop"}
	if diff := cmp.Diff(all, sent(passing("passed", "passed", "tls", "x.pass.test"))); diff != "" {
		t.Errorf("sent for a name that is passed on (-want +got):\n%s", diff)
	}
	if got := sent(tlsGateway("edge", tlsServer{name: "one", settings: "mode: SIMPLE, minProtocolVersion: TLSV1_3", hosts: []string{"a.test"}})); len(got) > 0 {
		t.Errorf("sent for settings that are nobody else's: %q", got)
	}
}

// TestMisdirectedAtScale: what the servers of a port know of one another does not grow
// with the square of their number.
func TestMisdirectedAtScale(t *testing.T) {
	const n = 400
	s := newScene(t, traffic.Options{})
	var objects strings.Builder
	for i := range n {
		objects.WriteString(tlsGateway(fmt.Sprint("g", i), tlsServer{name: fmt.Sprint("s", i), hosts: []string{fmt.Sprintf("h%d.test", i), fmt.Sprintf("*.h%d.test", i)}}))
	}
	objects.WriteString(tlsGateway("inner", tlsServer{name: "inner", hosts: []string{"x.h0.test"}}))
	s.apply(objects.String() + answering("v", "g0", "h0.test"))
	rc := s.routes(node("router"), "https.443.s0.g0.shop")
	domains := 0
	for _, vh := range rc.GetVirtualHosts() {
		domains += len(vh.GetDomains())
	}
	if domains > 10 {
		t.Errorf("the routes of one of %d servers have %d domains", n, domains)
	}
	for host, want := range map[string]int{"h0.test": 200, "y.h0.test": 404, "x.h0.test": 421, "h7.test": 421, "unknown.test": 421} {
		if got := answerTo(rc, host); got != want {
			t.Errorf("%s is answered with %d, want %d", host, got, want)
		}
	}
}

// TestMisdirectedModel: random servers with hosts that cover one another. After each
// change each server answers 421 just for the hosts whose connections come to another one,
// but those for which it has routes itself, and a client that has been there all the time
// has what a new one is sent.
func TestMisdirectedModel(t *testing.T) {
	for _, seed := range histories.Seeds(t, 4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			m := &misdirectedModel{scene: newScene(t, traffic.Options{}), rand: rand.New(rand.NewPCG(seed, 3)), servers: make(map[string]tlsServer), routed: make(map[string][]string)}
			c := m.connect(node("router"))
			for range 40 {
				m.step()
				m.check(c)
			}
		})
	}
}

type misdirectedModel struct {
	*scene
	rand    *rand.Rand
	servers map[string]tlsServer // by the name of their Gateways
	routed  map[string][]string  // hosts of VirtualServices by Gateway
}

var misdirectedHosts = []string{"*", "*.test", "a.test", "b.test", "*.b.test", "x.b.test", "*.x.b.test", "c.org"}

func (m *misdirectedModel) step() {
	m.t.Helper()
	name := fmt.Sprint("g", m.rand.IntN(4))
	hosts := slices.Clone(misdirectedHosts)
	m.rand.Shuffle(len(hosts), func(i, j int) { hosts[i], hosts[j] = hosts[j], hosts[i] })
	hosts = hosts[:1+m.rand.IntN(2)]
	switch m.rand.IntN(5) {
	case 0, 1:
		s := tlsServer{name: name, hosts: hosts}
		if m.rand.IntN(3) == 0 {
			s.protocol, s.settings = "TLS", "mode: PASSTHROUGH"
		}
		m.servers[name] = s
		m.apply(tlsGateway(name, s))
	case 2:
		if _, ok := m.servers[name]; ok {
			delete(m.servers, name)
			m.must(m.store.Delete(istio.Gateway, name, "shop", nil))
			m.flush()
		}
	default:
		hosts = hosts[:1] // One that includes the other is not valid.
		m.routed[name] = hosts
		m.apply(answering(name, name, hosts...) + passing("passed-"+name, name, "tls", hosts...))
	}
}

// check compares what a client has with what a new one is sent, and with the model.
func (m *misdirectedModel) check(c *xdstest.Client) {
	m.t.Helper()
	names := m.owners()
	for name := range m.servers {
		config := fmt.Sprintf("https.443.%s.%s.shop", name, name)
		if !slices.Contains(slices.Collect(maps.Values(names)), name) || m.servers[name].protocol == "TLS" {
			continue
		}
		m.must(c.Subscribe(envoy.RouteType, config))
		m.await(c, func(st xdstest.State) bool { return st.Has(envoy.RouteType, config) })
		m.must(m.server.WaitApplied(m.t.Context(), nil))
		fresh := m.routes(node("router"), config)
		old, err := c.State().Resources(envoy.RouteType)[config].Message()
		m.must(err)
		if diff := cmp.Diff(proto.Message(fresh), old, protocmp.Transform()); diff != "" {
			m.t.Fatalf("%s: a new client has another one (-new +old):\n%s", config, diff)
		}
		for _, host := range []string{"a.test", "b.test", "x.b.test", "y.b.test", "z.x.b.test", "z.test", "c.org", "other.net"} {
			of := nameOf(names, host)
			want := of != "" && names[of] != name && !m.serves(name, host, of)
			if got := answerTo(fresh, host); (got == http.StatusMisdirectedRequest) != want {
				m.t.Fatalf("%s answers %d for %s, which is of %q among %v; its routes are for %q", name, got, host, of, names, m.routed[name])
			}
		}
	}
}

// owners returns which Gateway has the connections for each server name.
func (m *misdirectedModel) owners() map[string]string {
	out, taken := make(map[string]string), make(map[string]string)
	for _, name := range slices.Sorted(maps.Keys(m.servers)) { // All are equally old.
		s := m.servers[name]
		if !claimNames(taken, name, s.hosts) {
			continue
		}
		hosts := s.hosts
		if s.protocol == "TLS" {
			hosts = m.routed[name]
			if !slices.ContainsFunc(hosts, func(h string) bool {
				return slices.ContainsFunc(s.hosts, func(of string) bool { return narrower(h, of) != "" })
			}) {
				continue
			}
		}
		if slices.Contains(hosts, "*") {
			hosts = []string{"*"}
		}
		claimNames(out, name, hosts)
	}
	return out
}

// claimNames gives names to a Gateway if nobody has one of them.
func claimNames(out map[string]string, by string, hosts []string) bool {
	if slices.ContainsFunc(hosts, func(h string) bool { _, taken := out[h]; return taken }) {
		return false
	}
	for _, h := range hosts {
		out[h] = by
	}
	return true
}

// narrower returns which of two hosts the other covers; "" for none.
func narrower(a, b string) string {
	covers := func(wide, host string) bool {
		suffix, wild := strings.CutPrefix(wide, "*")
		return wide == host || wild && strings.HasSuffix(strings.TrimPrefix(host, "*"), suffix)
	}
	switch {
	case covers(a, b):
		return b
	case covers(b, a):
		return a
	default:
		return ""
	}
}

// nameOf returns the most specific name that covers a host; "" for none.
func nameOf(names map[string]string, host string) string {
	best := ""
	for n := range names {
		if narrower(n, host) == host && len(n) > len(best) || n == host {
			best = n
		}
		if best == host {
			return host
		}
	}
	return best
}

// serves reports whether a Gateway has routes for a host that are no wider than a name.
func (m *misdirectedModel) serves(gateway, host, name string) bool {
	for _, r := range m.routed[gateway] {
		for _, h := range m.servers[gateway].hosts {
			d := narrower(r, h)
			if d != "" && narrower(d, host) == host && narrower(d, name) == d {
				return true
			}
		}
	}
	return false
}
