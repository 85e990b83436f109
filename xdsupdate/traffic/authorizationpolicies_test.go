// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"fmt"
	"math/rand/v2"
	"slices"

	meshconfig "istio.io/api/mesh/v1alpha1"
	security "istio.io/api/security/v1beta1"
	apitype "istio.io/api/type/v1beta1"

	"github.com/pilotkit/pilotkit/internal/test/routesim"
)

// Values of AuthorizationPolicies. Those of callWords meet them often.
var (
	ruleWords = map[string][]string{
		"principals": {
			"td1/ns/shop/sa/web", "cluster.local/ns/shop/sa/web", "old/ns/*", "*", "*/sa/web", "spiffe://td1/ns/bill/sa/job", "*1/ns/shop/sa/web",
			"*/ns/shop/sa/web", "td1/*", "other/ns/shop/sa/web", "td1/ns/shop/*", "edge.example.com",
		},
		"requestPrincipals": {"*", "*/*", "iss1/alice", "iss1/*", "*/alice", "iss*", "*ce", "https://iss/two/bob", "https://iss/two", "iss1/", "a*b/alice"},
		"namespaces":        {"shop", "bill", "s*", "*", "*p", "s*p", "none"},
		"serviceAccounts":   {"web", "shop/web", "bill/job", "job"},
		"trustDomains":      {"td1", "old", "other", "*", "o*", "*1", "*d", "cluster.local"},
		"ipBlocks":          {"10.0.0.1", "10.0.0.0/8", "10.0.1.7/24", "192.168.0.0/16", "0.0.0.0/0", "::1", "2001:db8::/32", "::/0"},
		"hosts":             {"a.example.com", "A.Example.com", "*", "*.example.com", "a.*", "a.example.com:80", "b.example.com"},
		"methods":           {"GET", "POST", "*", "P*", "*T", "get"},
		"paths": {
			"/", "/a", "/a/*", "*", "*/b", "/a*", "/a/{*}", "/a/{**}", "/{*}/b", "/{**}", "/a/{*}/c/{**}", "/a/{**}/", "/a*b", "*a*", "/a?x=1", "/A", "/{*}/",
		},
		"ports":         {"80", "9000", "443", "65535"},
		"text":          {"one", "o*", "*e", "*", "two", "on", "O*", "a*b", "one,two"},
		"list":          {"one", "[one]", "[o*]", "*", "[*]", "[", "two"},
		"actionsOfRule": nil,
	}
	conditionWords = map[string]string{
		"source.ip": "ipBlocks", "remote.ip": "ipBlocks", "destination.ip": "ipBlocks", "destination.port": "ports", "connection.sni": "hosts",
		"source.principal": "principals", "source.namespace": "namespaces", "source.serviceAccount": "serviceAccounts", "source.trustDomain": "trustDomains",
		"request.auth.principal": "requestPrincipals", "request.auth.audiences": "text", "request.auth.presenter": "text",
		"request.auth.claims[group]": "text", "request.auth.claims[a][b]": "text", "request.headers[X-Name]": "text", "request.headers[host]": "hosts",
		"request.headers[:method]": "methods", "experimental.envoy.filters.a[k]": "list",
	}
	conditionKeys = sortedKeys(conditionWords)
)

func sortedKeys[V any](m map[string]V) (keys []string) {
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// policyDice makes random AuthorizationPolicies.
type policyDice struct{ *rand.Rand }

func (d policyDice) chance(percent int) bool { return d.IntN(100) < percent }

// words returns some values of a field: often none.
func (d policyDice) words(field string, percent int) (out []string) {
	if !d.chance(percent) {
		return nil
	}
	for range 1 + d.IntN(3) {
		out = append(out, pick(d.Rand, ruleWords[field]))
	}
	return out
}

// policy returns a policy; what is random is often refused by validation.
func (d policyDice) policy() *security.AuthorizationPolicy {
	p := &security.AuthorizationPolicy{Action: pick(d.Rand, []security.AuthorizationPolicy_Action{
		security.AuthorizationPolicy_ALLOW, security.AuthorizationPolicy_ALLOW, security.AuthorizationPolicy_DENY, security.AuthorizationPolicy_DENY,
		security.AuthorizationPolicy_AUDIT, security.AuthorizationPolicy_CUSTOM,
	})}
	if p.GetAction() == security.AuthorizationPolicy_CUSTOM {
		p.ActionDetail = &security.AuthorizationPolicy_Provider{Provider: &security.AuthorizationPolicy_ExtensionProvider{
			Name: pick(d.Rand, []string{"grpc", "grpc", "web", "web", "open", "missing", "nobody"}),
		}}
	}
	switch d.IntN(10) {
	case 0:
		p.Selector = &apitype.WorkloadSelector{MatchLabels: map[string]string{"app": pick(d.Rand, []string{"edge", "edge", "other"})}}
	case 1:
		p.TargetRefs = []*apitype.PolicyTargetReference{{
			Group: "gateway.networking.k8s.io", Kind: pick(d.Rand, []string{"Gateway", "GatewayClass"}), Name: pick(d.Rand, []string{"g1", "g2"}),
		}}
	}
	for range pick(d.Rand, []int{0, 1, 1, 1, 2, 3}) {
		p.Rules = append(p.Rules, d.rule())
	}
	return p
}

func (d policyDice) rule() *security.Rule {
	r := &security.Rule{}
	for range pick(d.Rand, []int{0, 0, 1, 1, 2}) {
		r.From = append(r.From, &security.Rule_From{Source: d.source()})
	}
	for range pick(d.Rand, []int{0, 0, 1, 1, 2}) {
		r.To = append(r.To, &security.Rule_To{Operation: d.operation()})
	}
	for range pick(d.Rand, []int{0, 0, 0, 1, 2}) {
		key := pick(d.Rand, conditionKeys)
		c := &security.Condition{Key: key, Values: d.words(conditionWords[key], 70)}
		if len(c.GetValues()) == 0 || d.chance(30) {
			c.NotValues = d.words(conditionWords[key], 100)
		}
		r.When = append(r.When, c)
	}
	return r
}

func (d policyDice) source() *security.Source {
	s := &security.Source{}
	for i := range 1 + d.IntN(2) {
		often := 50 + 50*(1-i)
		switch d.IntN(7) {
		case 0:
			s.Principals, s.NotPrincipals = d.words("principals", often), d.words("principals", 30)
		case 1:
			s.RequestPrincipals, s.NotRequestPrincipals = d.words("requestPrincipals", often), d.words("requestPrincipals", 30)
		case 2:
			s.Namespaces, s.NotNamespaces = d.words("namespaces", often), d.words("namespaces", 30)
		case 3:
			s.ServiceAccounts, s.NotServiceAccounts = d.words("serviceAccounts", often), d.words("serviceAccounts", 30)
		case 4:
			s.TrustDomains, s.NotTrustDomains = d.words("trustDomains", often), d.words("trustDomains", 30)
		case 5:
			s.IpBlocks, s.NotIpBlocks = d.words("ipBlocks", often), d.words("ipBlocks", 30)
		case 6:
			s.RemoteIpBlocks, s.NotRemoteIpBlocks = d.words("ipBlocks", often), d.words("ipBlocks", 30)
		}
	}
	return s
}

func (d policyDice) operation() *security.Operation {
	o := &security.Operation{}
	for i := range 1 + d.IntN(2) {
		often := 50 + 50*(1-i)
		switch d.IntN(5) {
		case 0:
			o.Hosts, o.NotHosts = d.words("hosts", often), d.words("hosts", 30)
		case 1:
			o.Methods, o.NotMethods = d.words("methods", often), d.words("methods", 30)
		case 2:
			o.Ports, o.NotPorts = d.words("ports", often), d.words("ports", 30)
		default:
			o.Paths, o.NotPaths = d.words("paths", often), d.words("paths", 30)
		}
	}
	return o
}

// providerServices are the hosts of the extension providers that are there.
var providerServices = map[string]string{"grpc": "grpc.authz.example.com", "web": "web.authz.example.com", "open": "open.authz.example.com"}

// authorizationMesh has extension providers of all sorts.
func authorizationMesh() *meshconfig.MeshConfig {
	grpc := func(service string, open bool) *meshconfig.MeshConfig_ExtensionProvider_EnvoyExtAuthzGrpc {
		return &meshconfig.MeshConfig_ExtensionProvider_EnvoyExtAuthzGrpc{
			EnvoyExtAuthzGrpc: &meshconfig.MeshConfig_ExtensionProvider_EnvoyExternalAuthorizationGrpcProvider{Service: service, Port: 80, FailOpen: open},
		}
	}
	return &meshconfig.MeshConfig{
		TrustDomain: "td1", TrustDomainAliases: []string{"old"},
		ExtensionProviders: []*meshconfig.MeshConfig_ExtensionProvider{
			{Name: "grpc", Provider: grpc(providerServices["grpc"], false)},
			{Name: "open", Provider: grpc(providerServices["open"], true)},
			{Name: "missing", Provider: grpc("missing.authz.example.com", false)},
			{Name: "web", Provider: &meshconfig.MeshConfig_ExtensionProvider_EnvoyExtAuthzHttp{
				EnvoyExtAuthzHttp: &meshconfig.MeshConfig_ExtensionProvider_EnvoyExternalAuthorizationHttpProvider{Service: providerServices["web"], Port: 80},
			}},
		},
	}
}

// providerAnswer is what each provider says of a call: by the address that it comes from, and differently.
func providerAnswer(name string, c routesim.Call) routesim.Answer {
	bytes := c.From.As16()
	return routesim.Answer((int(bytes[15]) + len(name)) % 3)
}

func providersRead() map[string]*routesim.AuthorizationProvider {
	out := make(map[string]*routesim.AuthorizationProvider)
	for name := range providerServices {
		out[name] = &routesim.AuthorizationProvider{
			HTTP: name == "web", Open: name == "open", Answer: func(c routesim.Call) routesim.Answer { return providerAnswer(name, c) },
		}
	}
	return out
}

// providerAsked answers for the cluster of a provider.
func providerAsked(cluster string, c routesim.Call) routesim.Answer {
	for name, host := range providerServices {
		if cluster == fmt.Sprintf("outbound|80||%s", host) {
			return providerAnswer(name, c)
		}
	}
	return routesim.Fails
}
