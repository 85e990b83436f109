// SPDX-License-Identifier: Apache-2.0

package realservers

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"

	security "istio.io/api/security/v1beta1"
	apitype "istio.io/api/type/v1beta1"
)

// dice makes random policies and calls that have to do with each other.
type dice struct{ *rand.Rand }

func pick(d dice, from ...string) string { return from[d.IntN(len(from))] }

// some returns one or two of some values, or none.
func (d dice) some(percent int, from ...string) (out []string) {
	if d.IntN(100) >= percent {
		return nil
	}
	for range 1 + d.IntN(2) {
		out = append(out, pick(d, from...))
	}
	return out
}

// wordsOf are the values of fields and of conditions.
func wordsOf(port uint16) map[string][]string {
	addresses := []string{"127.0.0.1", "127.0.0.2/32", "127.0.0.0/30", "127.0.0.9/8", "10.0.0.0/8", "::/0", "0.0.0.0/0"}
	principals := []string{"cluster.local/ns/web/sa/cart", "*/sa/cart", "cluster.local/ns/evil/*", "*", "*/ns/shop/sa/bill", "other.domain/*"}
	return map[string][]string{
		"source.principal": principals, "source.namespace": {"web", "evil", "w*", "*", "*op"}, "source.serviceAccount": {"web/cart", "bill", "evil/evil"},
		"source.trustDomain": {"cluster.local", "other.domain", "*"}, "source.ip": addresses, "remote.ip": addresses, "destination.ip": addresses,
		"destination.port": {strconv.Itoa(int(port)), "1"}, "connection.sni": {"*", "quotes.shop"},
		"hosts": {"quotes.shop:9000", "QUOTES*", "*", "other.shop", "*:9000", "*.shop"}, "methods": {"POST", "GET", "P*", "*", "*T"},
		"paths": {
			"/quotes.Quotes/Get", "/quotes.Quotes/*", "*/Put", "*", "/quotes.Quotes/G*", "/{*}/Get", "/{**}/Put", "/quotes.Quotes/{*}", "/quotes.Quotes/{*}/b", "/{*}/a/{**}",
		},
		"request.headers[X-Name]": {"one", "o*", "*e", "*", "One"}, "request.headers[host]": {"quotes.shop:9000", "other*", "*"},
		"request.headers[:method]": {"POST", "GET"}, "request.auth.principal": {"*", "a/b"}, "request.auth.claims[group]": {"one", "*"},
	}
}

// policy returns a policy of words.
func (d dice) policy(words map[string][]string) *security.AuthorizationPolicy {
	p := &security.AuthorizationPolicy{Action: security.AuthorizationPolicy_Action(d.IntN(3))} //nolint:gosec // ALLOW, DENY, AUDIT
	if d.IntN(8) == 0 {
		p.Action = security.AuthorizationPolicy_CUSTOM
		p.ActionDetail = &security.AuthorizationPolicy_Provider{Provider: &security.AuthorizationPolicy_ExtensionProvider{Name: "asked"}}
	}
	if d.IntN(4) == 0 {
		p.Selector = &apitype.WorkloadSelector{MatchLabels: map[string]string{"app": pick(d, "quotes", "quotes", "other")}}
	}
	for range d.IntN(4) {
		p.Rules = append(p.Rules, d.rule(words))
	}
	return p
}

func (d dice) rule(words map[string][]string) *security.Rule {
	r := &security.Rule{}
	for range d.IntN(2) {
		r.From = append(r.From, &security.Rule_From{Source: &security.Source{
			Principals: d.some(30, words["source.principal"]...), NotPrincipals: d.some(10, words["source.principal"]...),
			Namespaces: d.some(20, words["source.namespace"]...), NotNamespaces: d.some(10, words["source.namespace"]...),
			IpBlocks: d.some(20, words["source.ip"]...), NotIpBlocks: d.some(10, words["source.ip"]...),
			RemoteIpBlocks: d.some(10, words["source.ip"]...), RequestPrincipals: d.some(5, "*"), NotRequestPrincipals: d.some(5, "*"),
			TrustDomains: d.some(10, words["source.trustDomain"]...), NotTrustDomains: d.some(5, words["source.trustDomain"]...),
		}})
	}
	for range d.IntN(3) {
		r.To = append(r.To, &security.Rule_To{Operation: &security.Operation{
			Hosts: d.some(20, words["hosts"]...), NotHosts: d.some(10, words["hosts"]...), Methods: d.some(20, words["methods"]...), NotMethods: d.some(5, words["methods"]...),
			Paths: d.some(50, words["paths"]...), NotPaths: d.some(20, words["paths"]...), Ports: d.some(20, words["destination.port"]...), NotPorts: d.some(10, "1"),
		}})
	}
	for _, key := range slices.Sorted(maps.Keys(words)) {
		values := words[key]
		if d.IntN(25) == 0 && key != "hosts" && key != "methods" && key != "paths" {
			r.When = append(r.When, &security.Condition{Key: key, Values: d.some(70, values...), NotValues: d.some(40, values...)})
		}
	}
	return r
}

// request returns the method of a call, and its headers.
func (d dice) request() (method string, headers []string) {
	if d.IntN(2) == 0 {
		headers = []string{"x-name", pick(d, "one", "One", "on", "two", "")}
	}
	return pick(d, "Get", "Put", "Get/b", "a/b", "a/[x", "get"), headers
}
