// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"net/netip"

	"github.com/pilotkit/pilotkit/internal/test/routesim"
)

// callWords are what calls are made of.
var callWords = struct {
	uris, dnsNames, paths, hosts, methods, texts []string
	addresses                                    []netip.Addr
	claims                                       []map[string]any
}{
	uris: []string{
		"spiffe://td1/ns/shop/sa/web", "spiffe://cluster.local/ns/shop/sa/web", "spiffe://old/ns/shop/sa/web", "spiffe://other/ns/shop/sa/web",
		"spiffe://td1/ns/bill/sa/job", "spiffe://old/ns/bill/sa/web", "spiffe://td1/x/ns/shop/y/sa/web/z", "spiffe://td1", "https://td1/ns/shop/sa/web", "spiffe://td1/a/ns/shop/sa/web",
	},
	dnsNames: []string{"edge.example.com", "a/ns/shop/b"},
	paths: []string{
		"/", "/a", "/a/", "/a/b", "/a/b/c", "/a/b/c/d", "/b", "/x/b", "/A", "/a*b", "/ab", "/aa*", "/a/b/", "/%2Fa", "/a?x=1", "/b?y", "/a/b/c/?/a/", "/a//c/", "//", "//a", "/x/../a", "/a/%2e%2E/b", "/%61/b", "/a\\b", "/a%2Fb", "/./a/.", "/a/b/..", "/%00", "/a^", "/%5ea?..//", "/ä", "/a%5C..%5Cb", "/a#b", "/a/[x]", "/a/[/c/d", "/[/b",
	},
	hosts:   []string{"a.example.com", "A.EXAMPLE.com", "a.example.com:80", "b.example.com", "a.b.example.com", "c.test", ""},
	methods: []string{"GET", "POST", "PUT", "get"},
	texts:   []string{"one", "two", "on", "", "One", "a*b", "axb", "one,two", "*"},
	addresses: []netip.Addr{
		netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2"), netip.MustParseAddr("10.0.1.9"), netip.MustParseAddr("192.168.7.3"), netip.MustParseAddr("8.8.8.8"),
		netip.MustParseAddr("::1"), netip.MustParseAddr("2001:db8::5"), netip.MustParseAddr("2001:db9::4"),
	},
	claims: []map[string]any{
		nil,
		{},
		{"iss": "iss1", "sub": "alice", "aud": "one", "azp": "two", "group": "one"},
		{"iss": "iss1", "sub": "bob", "aud": []any{"one", "two"}, "group": []any{"two", 3.0, "one"}, "a": map[string]any{"b": "one"}},
		{"iss": "https://iss/two", "sub": "bob", "aud": []any{}, "group": true, "a": map[string]any{"b": []any{"on"}}},
		{"iss": "iss1", "sub": "", "azp": []any{"one"}, "a": []any{"one"}},
		{"iss": "iss2", "azp": 5.0, "group": ""},
		{"iss": "a*b", "sub": "alice", "group": "*"},
		{"sub": "alice"},
	},
}

// call returns a random request to port 80, or a connection to port 9000.
func (d policyDice) call(connection bool) routesim.Call {
	w := &callWords
	c := routesim.Call{
		From: pick(d.Rand, w.addresses), Client: pick(d.Rand, w.addresses), ServerName: pick(d.Rand, w.hosts),
		To: netip.AddrPortFrom(pick(d.Rand, w.addresses), 80),
	}
	if d.chance(70) {
		c.Certificate = &routesim.Certificate{URIs: []string{pick(d.Rand, w.uris)}}
		if d.chance(10) {
			c.Certificate.URIs = append(c.Certificate.URIs, pick(d.Rand, w.uris))
		}
		if d.chance(10) {
			c.Certificate = &routesim.Certificate{DNSNames: []string{pick(d.Rand, w.dnsNames)}, Subject: "CN=web"}
		}
	}
	if d.chance(30) {
		c.Metadata = map[string]map[string]any{"envoy.filters.a": {"k": pick(d.Rand, []any{"one", "two", []any{"one"}, []any{"two", 1.0}, true})}}
	}
	if connection {
		c.To = netip.AddrPortFrom(c.To.Addr(), 9000)
		return c
	}
	c.Request = &routesim.Request{
		Port: 80, Scheme: "http", Method: pick(d.Rand, w.methods), Authority: pick(d.Rand, w.hosts), Path: pick(d.Rand, w.paths), Headers: map[string]string{},
	}
	if d.chance(60) {
		c.Headers["x-name"] = pick(d.Rand, w.texts)
	}
	c.Claims = pick(d.Rand, w.claims)
	return c
}
