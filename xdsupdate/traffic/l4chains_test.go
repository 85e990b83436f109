// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	gocmp "github.com/google/go-cmp/cmp"

	"github.com/pilotkit/pilotkit/internal/test/histories"
	"github.com/pilotkit/pilotkit/internal/xdsbuild"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

const (
	tcpGateway = `Gateway infra/edge {"selector": {"app": "edge"}, "servers": [
		{"hosts": ["*"], "port": {"number": 90, "name": "tcp", "protocol": "TCP"}}]}`
	passingGateway = `Gateway infra/edge {"selector": {"app": "edge"}, "servers": [
		{"hosts": ["*.p.com"], "port": {"number": 443, "name": "tls", "protocol": "TLS"}, "tls": {"mode": "PASSTHROUGH"}},
		{"hosts": ["t.com"], "port": {"number": 443, "name": "https", "protocol": "HTTPS"}, "tls": {"mode": "SIMPLE", "credentialName": "c"}}]}`
)

// describeChains says what the filter chains of a listener match, and where they lead.
func describeChains(t *testing.T, l *listenerv3.Listener) []string {
	t.Helper()
	ranges := func(name string, list []*core.CidrRange) string {
		out := ""
		for _, r := range list {
			out += fmt.Sprintf("%s %s/%d ", name, r.GetAddressPrefix(), r.GetPrefixLen().GetValue())
		}
		return out
	}
	var out []string
	for _, c := range l.GetFilterChains() {
		m := c.GetFilterChainMatch()
		line := ranges("to", m.GetPrefixRanges()) + ranges("from", m.GetSourcePrefixRanges())
		if len(m.GetServerNames()) > 0 {
			line += strings.Join(m.GetServerNames(), " ") + " "
		}
		out = append(out, line+"> "+strings.TrimSuffix(shortCluster(describeFilter(t, c.GetFilters()[0])), ".shop.svc.cluster.local"))
	}
	return out
}

// shortCluster returns the host of a cluster's name.
func shortCluster(name string) string { return name[strings.LastIndex(name, "|")+1:] }

// TestL4Conditions: where connections come from and go to counts, in the order of the
// routes.
func TestL4Conditions(t *testing.T) {
	tcp := func(routes string) string {
		return `VirtualService shop/tcp {"hosts": ["*"], "gateways": ["infra/edge"], "tcp": [` + routes + `]}`
	}
	tls := func(routes string) string {
		return `VirtualService shop/tls {"hosts": ["a.p.com", "b.p.com"], "gateways": ["infra/edge"], "tls": [` + routes + `]}`
	}
	route := func(match, host string) string {
		return fmt.Sprintf(`{"match": [%s], "route": [{"destination": {"host": %q}}]}`, match, host)
	}
	const toA, toB = `"sniHosts": ["a.p.com"]`, `"sniHosts": ["a.p.com", "b.p.com"]`
	for _, tc := range []struct {
		name, gateway, routes string
		want                  []string
	}{
		{
			"sources, and the rest", tcpGateway,
			tcp(route(`{"sourceSubnet": "10.1.2.3/8"}, {"sourceSubnet": "fd00::1"}`, "cart") + "," + route("", "catalog") + "," + route(`{"sourceSubnet": "11.0.0.0/8"}`, "cart")),
			[]string{"from 10.0.0.0/8 > Cart", "from fd00::1/128 > Cart", "> catalog"},
		},
		{
			"an earlier route has a range within its own", tcpGateway,
			tcp(route(`{"sourceSubnet": "10.0.0.0/8"}`, "cart") + "," + route(`{"sourceSubnet": "10.1.0.0/16"}`, "catalog")),
			[]string{"from 10.0.0.0/8 > Cart"},
		},
		{
			"a later route has what a narrower one leaves", tcpGateway,
			tcp(route(`{"sourceSubnet": "10.1.0.0/16"}`, "cart") + "," + route(`{"sourceSubnet": "10.0.0.0/8"}`, "catalog")),
			[]string{"from 10.1.0.0/16 > Cart", "from 10.0.0.0/8 > catalog"},
		},
		{
			"all of a family", tcpGateway, tcp(route(`{"sourceSubnet": "0.0.0.0/0"}`, "cart") + "," + route("", "catalog")),
			[]string{"from 0.0.0.0/1 from 128.0.0.0/1 > Cart", "> catalog"},
		},
		{
			"what follows a destination is repeated for it", tcpGateway,
			tcp(route(`{"destinationSubnets": ["10.0.0.0/8"], "sourceSubnet": "11.0.0.0/8"}`, "cart") + "," + route("", "catalog")),
			[]string{"to 10.0.0.0/8 from 11.0.0.0/8 > Cart", "> catalog", "to 10.0.0.0/8 > catalog"},
		},
		{
			"labels are the router's", tcpGateway,
			tcp(route(`{"sourceLabels": {"app": "web"}}`, "cart") + "," + route(`{"sourceLabels": {"app": "edge"}, "sourceNamespace": "ingress"}`, "catalog") + "," + route("", "cart")),
			[]string{"> catalog"},
		},
		{"nobody's", tcpGateway, tcp(route(`{"sourceNamespace": "web"}`, "cart")), nil},
		{"a range that cannot be read", tcpGateway, tcp(route(`{"sourceSubnet": "x"}`, "cart")), nil},
		{
			"TLS, and its neighbours", passingGateway,
			tls(route(`{"destinationSubnets": ["10.0.0.0/8", "12.0.0.1"], `+toA+`}`, "cart") + "," + route(`{`+toB+`}`, "catalog") + "," + route(`{`+toA+`}`, "cart")),
			[]string{
				"to 10.0.0.0/8 to 12.0.0.1/32 a.p.com > Cart",
				"a.p.com b.p.com > catalog", "to 10.0.0.0/8 to 12.0.0.1/32 b.p.com > catalog",
				"t.com > HTTP", "to 10.0.0.0/8 to 12.0.0.1/32 t.com > HTTP",
			},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := stage(t, traffic.Options{}, objectsOf(t, tc.gateway, tc.routes), cartPopulation())
			listeners := s.ask(edge(), envoy.ListenerType)
			var got []string
			for _, name := range listeners.names {
				got = append(got, describeChains(t, listeners.resources[name].(*listenerv3.Listener))...)
			}
			if diff := gocmp.Diff(tc.want, got); diff != "" {
				t.Errorf("filter chains (-want +got):\n%s", diff)
			}
		})
	}
}

// modelRoute is a route of a model: the first whose conditions hold has the connection.
type modelRoute struct {
	to, from, name string
	target         string
}

func (r modelRoute) has(to, from netip.Addr, name string) bool {
	in := func(subnet string, addr netip.Addr) bool {
		return subnet == "" || netip.MustParsePrefix(subnet).Contains(addr)
	}
	return in(r.to, to) && in(r.from, from) && (r.name == "" || r.name == name)
}

// TestL4Order: Envoy's choice of a filter chain, which knows no order, is the first
// route whose conditions hold, of random ones.
func TestL4Order(t *testing.T) {
	subnets := []string{"", "10.0.0.0/8", "10.1.0.0/16", "10.1.1.0/24", "10.2.0.0/16", "0.0.0.0/0", "fd00::/8"}
	addrs := []string{"10.0.0.1", "10.1.0.1", "10.1.1.1", "10.2.0.1", "9.9.9.9", "fd00::1", "fe80::1"}
	for _, seed := range histories.Seeds(t, 150) {
		r := rand.New(rand.NewPCG(seed, 3))
		var model []modelRoute
		var routes []string
		tls := seed%2 == 0 // TLS routes know names and no sources, TCP routes sources and no names
		for i := range 1 + r.IntN(8) {
			m := modelRoute{to: pick(r, subnets), target: fmt.Sprintf("to-%d.com", i)}
			var match []string
			if m.to != "" {
				match = append(match, fmt.Sprintf(`"destinationSubnets": [%q]`, m.to))
			}
			if tls {
				m.name = pick(r, []string{"a.com", "b.com"})
				match = append(match, fmt.Sprintf(`"sniHosts": [%q]`, m.name))
			} else if m.from = pick(r, subnets); m.from != "" {
				match = append(match, fmt.Sprintf(`"sourceSubnet": %q`, m.from))
			}
			model = append(model, m)
			routes = append(routes, fmt.Sprintf(`{"match": [{%s}], "route": [{"destination": {"host": %q}}]}`, strings.Join(match, ", "), m.target))
		}
		gateway, kind, listener := tcpGateway, "tcp", "0.0.0.0_90"
		if tls {
			gateway, kind, listener = strings.Replace(passingGateway, "*.p.com", "*.com", 1), "tls", "0.0.0.0_443"
		}
		got := stage(t, traffic.Options{}, objectsOf(t, gateway, fmt.Sprintf(
			`VirtualService shop/v {"hosts": ["*.com"], "gateways": ["infra/edge"], %q: [%s]}`, kind, strings.Join(routes, ", "))), nil).
			listener(edge(), listener).GetFilterChains()
		for _, to := range addrs {
			for _, from := range addrs {
				for _, name := range []string{"a.com", "b.com"} {
					want := ""
					for _, m := range model {
						if m.has(netip.MustParseAddr(to), netip.MustParseAddr(from), name) {
							want = m.target
							break
						}
					}
					if have := chosenChain(t, got, netip.MustParseAddr(to), netip.MustParseAddr(from), name); have != want {
						t.Fatalf("seed %d: to %s from %s for %s: %q, want %q of %v", seed, to, from, name, have, want, model)
					}
				}
			}
		}
	}
}

// chosenChain chooses as Envoy does: by the longest range of the destination, then by
// name, then by the longest range of the source, and never goes back.
func chosenChain(t *testing.T, chains []*listenerv3.FilterChain, to, from netip.Addr, name string) string {
	t.Helper()
	narrow := func(in []*listenerv3.FilterChain, length func(*listenerv3.FilterChain) int) []*listenerv3.FilterChain {
		best, out := -1, []*listenerv3.FilterChain(nil)
		for _, c := range in {
			switch n := length(c); {
			case n > best:
				best, out = n, []*listenerv3.FilterChain{c}
			case n == best && n >= 0:
				out = append(out, c)
			}
		}
		return out
	}
	longest := func(list []*core.CidrRange, addr netip.Addr) int {
		n := cmp.Compare(0, len(list)) // -1: none of them; 0: no condition
		for _, r := range list {
			if p := netip.PrefixFrom(netip.MustParseAddr(r.GetAddressPrefix()), int(r.GetPrefixLen().GetValue())); p.Contains(addr) {
				n = max(n, p.Bits())
			}
		}
		return n
	}
	chains = narrow(chains, func(c *listenerv3.FilterChain) int { return longest(c.GetFilterChainMatch().GetPrefixRanges(), to) })
	chains = narrow(chains, func(c *listenerv3.FilterChain) int {
		names := c.GetFilterChainMatch().GetServerNames()
		if slices.Contains(names, name) {
			return 1
		}
		return -min(len(names), 1)
	})
	chains = narrow(chains, func(c *listenerv3.FilterChain) int {
		return longest(c.GetFilterChainMatch().GetSourcePrefixRanges(), from)
	})
	if len(chains) == 0 {
		return ""
	}
	return shortCluster(describeFilter(t, chains[0].GetFilters()[0]))
}

// TestL4Report: what of the conditions does nothing is reported.
func TestL4Report(t *testing.T) {
	got := stage(t, traffic.Options{}, objectsOf(t, tcpGateway, `VirtualService shop/tcp {"hosts": ["*"], "gateways": ["infra/edge"], "tcp": [
		{"match": [{"sourceLabels": {"app": "web"}}, {"sourceLabels": {"app": "edge"}, "sourceSubnet": "10.0.0.0/8"}], "route": [{"destination": {"host": "cart"}}]},
		{"match": [{"destinationSubnets": ["10.0.0.0/33"]}], "route": [{"destination": {"host": "cart"}}]}]}`), cartPopulation()).ineffective()
	want := []string{
		"VirtualService shop/tcp: spec.tcp[0].match[0].sourceLabels: gateways do not know the labels of their clients: " +
			"the match is left out by those that do not have the labels app=web themselves",
		`VirtualService shop/tcp: spec.tcp[1]: its connections are closed: destinationSubnets[0]: "10.0.0.0/33" is no CIDR block`,
	}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("ineffective (-want +got):\n%s", diff)
	}
}

// TestL4Limit: an object whose destinations would repeat what others have too often is
// left out, as a whole, so that none of its routes gets what was for another.
func TestL4Limit(t *testing.T) {
	s := stage(t, traffic.Options{Limits: traffic.Limits{FilterChains: 15}}, objectsOf(t, passingGateway,
		`VirtualService shop/one {"hosts": ["a.p.com"], "gateways": ["infra/edge"], "tls": [
			{"match": [{"sniHosts": ["a.p.com"], "destinationSubnets": ["10.0.0.1"]}], "route": [{"destination": {"host": "cart"}}]}]}`,
		`VirtualService shop/two {"hosts": ["b.p.com"], "gateways": ["infra/edge"], "tls": [
			{"match": [{"sniHosts": ["b.p.com"], "destinationSubnets": ["10.0.0.2", "10.0.0.3"]}], "route": [{"destination": {"host": "cart"}}]},
			{"match": [{"sniHosts": ["b.p.com"]}], "route": [{"destination": {"host": "catalog"}}]}]}`), cartPopulation())
	got := s.ask(edge(), envoy.ListenerType, "0.0.0.0_443")
	l, _ := got.resources["0.0.0.0_443"].(*listenerv3.Listener)
	want := []string{"to 10.0.0.1/32 a.p.com > Cart", "t.com > HTTP", "to 10.0.0.1/32 t.com > HTTP"}
	if diff := gocmp.Diff(want, describeChains(t, l)); diff != "" {
		t.Errorf("filter chains (-want +got):\n%s", diff)
	}
	const failure = "VirtualService shop/two: spec.tls: its connections are closed: with its destinationSubnets the listener would have more than 15 matches"
	if got.failed["0.0.0.0_443"] != failure {
		t.Errorf("left out: %v", got.failed)
	}
}

// TestL4Quarantine: where a route for some connections is left out for a client that
// refuses it, no other route gets them.
func TestL4Quarantine(t *testing.T) {
	s := stage(t, traffic.Options{}, objectsOf(t, tcpGateway,
		`VirtualService shop/one {"hosts": ["*"], "gateways": ["infra/edge"], "tcp": [
			{"match": [{"sourceSubnet": "10.0.0.0/8"}], "route": [{"destination": {"host": "cart"}}]}]}`,
		`VirtualService shop/two {"hosts": ["*"], "gateways": ["infra/edge"], "tcp": [{"route": [{"destination": {"host": "catalog"}}]}]}`), cartPopulation())
	chains := func(r xdstest.Resource) []string {
		m, err := r.Message()
		s.must(err)
		return describeChains(t, m.(*listenerv3.Listener))
	}
	c := xdstest.NewClient(s.conn, xdstest.ClientOptions{Node: edge(), Delta: true, Answer: func(r xdstest.Response) error {
		if slices.Contains(chains(r.Resources[0]), "from 10.0.0.0/8 > Cart") {
			return errors.New("no Cart")
		}
		return nil
	}})
	s.must(c.Connect(t.Context()))
	defer c.Close()
	s.must(c.Subscribe(envoy.ListenerType, "0.0.0.0_90"))
	want := []string{"from 10.0.0.0/8 > " + xdsbuild.BlackHole, "> catalog"}
	s.await(c, func(st xdstest.State) bool {
		l, has := st.Resources(envoy.ListenerType)["0.0.0.0_90"]
		return has && slices.Equal(chains(l), want)
	})
}

// TestUnusedRoutesAreFound: TCP and TLS routes that get no connection are found, whatever takes the
// connections.
func TestUnusedRoutesAreFound(t *testing.T) {
	const to, unused = `"route": [{"destination": {"host": "cart"}}]`, ": no server takes its connections, or earlier routes take all of them"
	tls := func(names string) string { return `{"match": [{"sniHosts": [` + names + `]}], ` + to + `}` }
	at := func(key, routes string) string {
		return "VirtualService shop/" + key + ` {"hosts": ["*"], "gateways": ["ingress/edge", "mesh", "ingress/edge"], ` + routes + "}"
	}
	services, none := cartPopulation(), testService("shop", "*.none.com", 443)
	none.Resolution, none.Attributes.Provider = registry.Passthrough, registry.External
	services.services = append(services.services, none)
	s := stage(t, traffic.Options{}, objectsOf(t,
		`Gateway ingress/edge {"selector": {"app": "edge"}, "servers": [
			{"port": {"number": 5000, "name": "tcp", "protocol": "TCP"}, "hosts": ["*"]},
			{"port": {"number": 443, "name": "tls", "protocol": "TLS"}, "hosts": ["*"], "tls": {"mode": "PASSTHROUGH"}},
			{"port": {"number": 80, "name": "http", "protocol": "HTTP"}, "hosts": ["*"]}]}`,
		at("a", `"tcp": [{"match": [{"port": 5000}], `+to+`}, {`+to+`}], "tls": [`+tls(`"a.com"`)+`, `+tls(`"a.com", "b.com"`)+`]`),
		at("b", `"tcp": [{`+to+`}], "tls": [`+tls(`"c.com"`)+`]`),
		at("c", `"tcp": [{"match": [{"port": 5001}], `+to+`}], "tls": [`+tls(`"d.com", "c.com"`)+`]`),
		at("mesh", `"tls": [{"match": [{"sniHosts": ["e.com"], "gateways": ["mesh"]}], `+to+`}, {"match": [{"sniHosts": ["e.com"], "gateways": ["ingress/edge"]}], "route": [{"destination": {"host": "*.none.com"}}]}]`),
		at("d", `"tcp": [{"match": [{"port": 5000, "sourceLabels": {"app": "edge"}}], `+to+`}]`),
	), services)
	want := []string{
		"Gateway ingress/edge: spec.servers[2]: no VirtualService for its hosts has routes of its kind",
		"VirtualService shop/a: spec.tcp[1]" + unused, "VirtualService shop/a: spec.tls[1]" + unused, "VirtualService shop/b: spec.tcp[0]" + unused,
		"VirtualService shop/c: spec.tcp[0]" + unused, "VirtualService shop/c: spec.tls[0]" + unused,
		"VirtualService shop/mesh: spec.tls[1].route[0].destination.host: service *.none.com has resolution NONE, and gateways do not know where it is: requests fail at Gateway ingress/edge",
		"VirtualService shop/mesh: spec.tls[0]: only gateways are configured for TLS routes",
	}
	if diff := gocmp.Diff(want, s.ineffective()); diff != "" {
		t.Errorf("without effect (-want +got):\n%s", diff)
	}
}
