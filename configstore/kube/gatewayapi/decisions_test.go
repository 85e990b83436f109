// SPDX-License-Identifier: Apache-2.0

package gatewayapi

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pilotkit/pilotkit/configstore/istio"
)

// world is the initial state of each case: Services, and a Gateway that accepts all routes.
const world = `
{apiVersion: v1, kind: Namespace, metadata: {name: infra}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: shop, labels: {tier: x}}}
---
{apiVersion: v1, kind: Service, metadata: {name: cart, namespace: shop}, spec: {ports: [{name: http, port: 80}]}}
---
{apiVersion: v1, kind: Service, metadata: {name: pay, namespace: shop}, spec: {ports: [{name: http, port: 80}]}}
---
kind: Gateway
metadata: {name: edge, namespace: infra}
spec:
  gatewayClassName: istio
  listeners: [{name: web, port: 80, protocol: HTTP, allowedRoutes: {namespaces: {from: All}}}]
---
`

// httpRoute is an HTTPRoute shop/NAME for the Gateway.
func httpRoute(name, rules string) string {
	return fmt.Sprintf(`{kind: HTTPRoute, metadata: {name: %s, namespace: shop}, spec: {parentRefs: [{name: edge, namespace: infra}], rules: %s}}
---
`, name, rules)
}

// grpcRoute is a GRPCRoute shop/NAME for the Gateway.
func grpcRoute(name, rules string) string {
	return strings.Replace(httpRoute(name, rules), "HTTPRoute", "GRPCRoute", 1)
}

const toCart = `backendRefs: [{name: cart, port: 80}]`

// TestDecisions checks rules of DECISIONS.md, and of the specification, that no public scenario
// covers, or not separately. want is the resulting state: the servers, HTTP, TLS and TCP routes,
// and the requested conditions.
func TestDecisions(t *testing.T) {
	t.Parallel()
	for _, c := range slices.Concat(decisions, tenantDecisions, edgeDecisions) {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			sys := newSystem()
			if err := sys.applyAll(world + c.objects); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, ask := range c.asks {
				got = append(got, sys.answer(ask))
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := diffSnapshots(sys.fresh(), sys.converter.Snapshot()); diff != "" {
				t.Errorf("(-fresh +incremental):\n%s", diff)
			}
		})
	}
}

// answer returns a part of the state: "servers" are the servers of all Gateways, "http", "tls" and
// "tcp" the routes of all VirtualServices, "matches" the matches in order, "hosts" their Gateways
// and hosts, "exports" their hosts and exportTo, "rules" all DestinationRules, "attached" the
// routes of the listeners of edge, and "Kind/namespace/name Condition" and "Kind/namespace/name
// LIST Condition" conditions.
func (s *system) answer(ask string) string {
	snapshot := s.state()
	var parts []string
	switch fields := strings.Fields(ask); fields[0] {
	case "servers":
		for _, c := range snapshot.gateways {
			parts = append(parts, compact(dig(c, "spec", "servers")))
		}
	case "hosts":
		for _, c := range snapshot.virtualServices {
			parts = append(parts, fmt.Sprint(dig(c, "spec", "gateways"), dig(c, "spec", "hosts")))
		}
	case "exports":
		for _, c := range snapshot.virtualServices {
			for _, host := range dig(c, "spec", "hosts").([]any) {
				parts = append(parts, fmt.Sprint(host, " ", dig(c, "spec", "exportTo")))
			}
		}
	case "rules":
		for _, c := range snapshot.destinationRules {
			parts = append(parts, compact(c["spec"]))
		}
	case "matches":
		for _, c := range s.converter.Snapshot().Configs(istio.VirtualService) {
			for _, route := range each(dig(asMap(c.Spec), "http")) {
				parts = append(parts, compact(route["match"]))
			}
		}
		return strings.Join(parts, " ")
	case "attached":
		for _, l := range each(snapshot.statuses["Gateway/infra/edge"]["listeners"]) {
			parts = append(parts, fmt.Sprint(l["name"], " ", l["attachedRoutes"]))
		}
		return strings.Join(parts, " ")
	case "http", "tls", "tcp":
		for _, c := range s.converter.Snapshot().Configs(istio.VirtualService) {
			if list := dig(asMap(c.Spec), fields[0]); list != nil {
				parts = append(parts, compact(list))
			}
		}
	default:
		status := snapshot.statuses[fields[0]]
		if len(fields) == 1 {
			return compact(status)
		}
		if len(fields) == 2 {
			return fmt.Sprint(conditionsOf(status)[fields[1]])
		}
		for _, entry := range each(status[fields[1]]) {
			parts = append(parts, fmt.Sprint(conditionsOf(entry)[fields[2]]))
		}
		return strings.Join(parts, ", ")
	}
	slices.Sort(parts)
	return strings.Join(parts, " ")
}

func compact(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return strings.ReplaceAll(string(data), `"`, "")
}

type decision struct {
	name, objects string
	asks, want    []string
}

var decisions = []decision{
	{
		"G5 HTTPS without tls", `
{kind: Gateway, metadata: {name: edge, namespace: infra}, spec: {gatewayClassName: istio, listeners: [{name: sec, port: 443, protocol: HTTPS}]}}`,
		[]string{"servers", "Gateway/infra/edge listeners Programmed", "Gateway/infra/edge Accepted"},
		[]string{"", "False Invalid 2", "False ListenersNotValid 2"},
	},
	{
		"G12 selectors of all and of no namespaces", `
kind: Gateway
metadata: {name: edge, namespace: infra}
spec:
  gatewayClassName: istio
  listeners:
  - {name: all, port: 80, protocol: HTTP, allowedRoutes: {namespaces: {from: Selector, selector: {}}}}
  - {name: none, port: 81, protocol: HTTP, allowedRoutes: {namespaces: {from: Selector, selector: {matchLabels: {tier: y}}}}}`,
		[]string{"servers"},
		[]string{"[{hosts:[infra/*,shop/*],port:{name:default,number:80,protocol:HTTP}}] [{hosts:[~/*],port:{name:default,number:81,protocol:HTTP}}]"},
	},
	{
		"G15 an IP address beside a Hostname, G16 a Service of another namespace", `
kind: Gateway
metadata: {name: edge, namespace: infra}
spec:
  gatewayClassName: istio
  addresses: [{type: IPAddress, value: 192.0.2.1}, {type: Hostname, value: cart.shop.svc.cluster.local}]
  listeners: [{name: web, port: 80, protocol: HTTP}]`,
		[]string{"servers", "Gateway/infra/edge Accepted", "Gateway/infra/edge Programmed"},
		[]string{
			"[{hosts:[infra/*],port:{name:default,number:80,protocol:HTTP}}]", "False UnsupportedAddress 2", "False AddressNotUsable 2",
		},
	},
	{
		"G22 an HTTPRoute and a GRPCRoute of one name",
		httpRoute("r", `[{`+toCart+`}]`) + grpcRoute("r", `[{matches: [{method: {service: a.B}}], backendRefs: [{name: pay, port: 80}]}]`),
		[]string{"http"},
		[]string{"[{match:[{uri:{prefix:/a.B/}}],name:shop.r.0,route:[{destination:{host:pay.shop.svc.cluster.local,port:{number:80}}}]}," +
			"{match:[{uri:{prefix:/}}],name:shop.r.0,route:[{destination:{host:cart.shop.svc.cluster.local,port:{number:80}}}]}]"},
	},
	{
		"G26 a header twice in different case",
		httpRoute("r", `[{matches: [{headers: [{name: X-A, value: one}, {name: x-a, value: two}]}], filters: [{type: RequestRedirect, requestRedirect: {statusCode: 301}}]}]`),
		[]string{"http"},
		[]string{"[{match:[{headers:{X-A:{exact:one}},uri:{prefix:/}}],name:shop.r.0,redirect:{derivePort:FROM_REQUEST_PORT,redirectCode:301}}]"},
	},
	{
		"G31 a TLSRoute on a wildcard listener and a nearer one", `
kind: Gateway
metadata: {name: edge, namespace: infra}
spec:
  gatewayClassName: istio
  listeners:
  - {name: wild, hostname: "*.example.com", port: 443, protocol: TLS, tls: {mode: Passthrough}, allowedRoutes: {namespaces: {from: All}}}
  - {name: a, hostname: a.example.com, port: 443, protocol: TLS, tls: {mode: Passthrough}, allowedRoutes: {namespaces: {from: All}}}
---
kind: TLSRoute
metadata: {name: t, namespace: shop}
spec: {parentRefs: [{name: edge, namespace: infra}], hostnames: [a.example.com, b.example.com], rules: [{backendRefs: [{name: cart, port: 80}]}]}`,
		[]string{"hosts"},
		[]string{"[infra/Gateway/edge/a.infra] [a.example.com] [infra/Gateway/edge/wild.infra] [b.example.com]"},
	},
	{
		"G32 no rule is left",
		httpRoute("r", `[{filters: [{type: ExtensionRef, extensionRef: {group: example.com, kind: Own, name: x}}], `+toCart+`}]`),
		[]string{"http", "HTTPRoute/shop/r parents Accepted", "HTTPRoute/shop/r parents PartiallyInvalid", "Gateway/infra/edge"},
		[]string{
			"[{directResponse:{status:500},match:[{uri:{prefix:/}}],name:shop.r.0}]", "False UnsupportedValue 1", "<nil>",
			"{conditions:{Accepted:True Accepted 1,Programmed:False AddressNotUsable 1,ResolvedRefs:True ResolvedRefs 1},listeners:[{attachedRoutes:0," +
				"conditions:{Accepted:True Accepted 1,Conflicted:False NoConflicts 1,Programmed:True Programmed 1,ResolvedRefs:True ResolvedRefs 1}," +
				"name:web,supportedKinds:[{group:gateway.networking.k8s.io,kind:GRPCRoute},{group:gateway.networking.k8s.io,kind:HTTPRoute}]}]}",
		},
	},
	{
		"G32 a Hostname with a namespace, beside a good backend",
		httpRoute("r", `[{backendRefs: [{group: networking.istio.io, kind: Hostname, name: a.b, namespace: shop, port: 80, weight: 1}, {name: cart, port: 80, weight: 1}]}]`),
		[]string{"http", "HTTPRoute/shop/r parents Accepted", "HTTPRoute/shop/r parents ResolvedRefs"},
		[]string{
			"[{match:[{uri:{prefix:/}}],name:shop.r.0,route:[{destination:{},weight:1},{destination:{host:cart.shop.svc.cluster.local,port:{number:80}},weight:1}]}]",
			"True Accepted 1", "False InvalidDestination 1",
		},
	},
	{
		"G33 a mirror of a GRPCRoute to a Service that does not exist",
		grpcRoute("g", `[{filters: [{type: RequestMirror, requestMirror: {backendRef: {name: nobody, port: 80}}}], `+toCart+`}]`),
		[]string{"http", "GRPCRoute/shop/g parents Accepted", "GRPCRoute/shop/g parents ResolvedRefs"},
		[]string{
			"[{name:shop.g.0,route:[{destination:{host:cart.shop.svc.cluster.local,port:{number:80}}}]}]", "True Accepted 1", "False BackendNotFound 1",
		},
	},
	{
		"G40 to G43, G45 paths, timeouts, retries, mirrors", `
kind: HTTPRoute
metadata: {name: r, namespace: shop}
spec:
  parentRefs: [{name: edge, namespace: infra}]
  rules:
  - matches: [{path: {type: Exact, value: /1}}]
    filters: [{type: URLRewrite, urlRewrite: {hostname: h, path: {type: ReplaceFullPath, replaceFullPath: '/a\1'}}}]
    timeouts: {request: 5s, backendRequest: 2s}
    ` + toCart + `
  - matches: [{path: {type: Exact, value: /2}}]
    retry: {codes: [503], backoff: 100ms}
    timeouts: {request: 0s, backendRequest: 1s}
    filters: [{type: RequestMirror, requestMirror: {backendRef: {name: pay, port: 80}, percent: 0}}]
    ` + toCart + `
  - matches: [{path: {type: PathPrefix, value: /3}}]
    filters:
    - {type: URLRewrite, urlRewrite: {path: {type: ReplacePrefixMatch, replacePrefixMatch: ""}}}
    - {type: RequestMirror, requestMirror: {backendRef: {name: pay, port: 80}, fraction: {numerator: 1, denominator: 8}}}
    - {type: ResponseHeaderModifier, responseHeaderModifier: {set: [{name: A, value: b}, {name: a, value: c}], remove: [z]}}
    ` + toCart,
		[]string{"http"},
		[]string{
			"[{match:[{uri:{exact:/1}}],name:shop.r.0,rewrite:{authority:h,uriRegexRewrite:{match:/.*,rewrite:/a\\\\\\\\1}}," +
				"route:[{destination:{host:cart.shop.svc.cluster.local,port:{number:80}}}],timeout:2s}," +
				"{match:[{uri:{exact:/2}}],mirrors:[{destination:{host:pay.shop.svc.cluster.local,port:{number:80}},percentage:{}}],name:shop.r.1," +
				"retries:{attempts:2,backoff:0.100s,perTryTimeout:1s,retryOn:connect-failure,refused-stream,unavailable,cancelled,503}," +
				"route:[{destination:{host:cart.shop.svc.cluster.local,port:{number:80}}}]}," +
				"{headers:{response:{remove:[z],set:{a:b}}},match:[{uri:{prefix:/3}}]," +
				"mirrors:[{destination:{host:pay.shop.svc.cluster.local,port:{number:80}},percentage:{value:12.5}}],name:shop.r.2,rewrite:{uri:/}," +
				"route:[{destination:{host:cart.shop.svc.cluster.local,port:{number:80}}}]}]",
		},
	},
	{
		"G46 only a regular expression that does not compile",
		httpRoute("r", `[{matches: [{path: {type: RegularExpression, value: "("}}], `+toCart+`}]`),
		[]string{"http", "HTTPRoute/shop/r parents Accepted", "Gateway/infra/edge listeners Accepted"},
		[]string{"", "False UnsupportedValue 1", "True Accepted 1"},
	},
	{
		"G51 a port that the Service does not have, G53 a Service and a ServiceEntry that do not exist", `
kind: HTTPRoute
metadata: {name: r, namespace: shop}
spec:
  parentRefs:
  - {group: "", kind: Service, name: cart, port: 81}
  - {group: "", kind: Service, name: nobody}
  - {group: networking.istio.io, kind: ServiceEntry, name: nobody}
  rules: [{` + toCart + `}]`,
		[]string{"http", "HTTPRoute/shop/r parents Accepted"},
		[]string{"", "False NoMatchingParent 1, False NoMatchingParent 1, False NoMatchingParent 1"},
	},
	{
		"A ServiceEntry as parent, with a port", `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: ext, namespace: shop}
spec: {hosts: [a.example.net, b.example.net], ports: [{number: 80, name: http, protocol: HTTP}], resolution: DNS}
---
kind: HTTPRoute
metadata: {name: r, namespace: shop}
spec:
  parentRefs: [{group: networking.istio.io, kind: ServiceEntry, name: ext, port: 80}]
  rules: [{backendRefs: [{group: networking.istio.io, kind: Hostname, name: a.example.net, port: 80}]}]`,
		[]string{"hosts", "HTTPRoute/shop/r parents Accepted", "HTTPRoute/shop/r parents ResolvedRefs"},
		[]string{"[mesh] [a.example.net] [mesh] [b.example.net]", "True Accepted 1", "True ResolvedRefs 1"},
	},
	{
		"A host of a ServiceEntry that its namespace does not export, and one that is exported to ours", `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: own, namespace: blog}
spec: {hosts: [own.example.net], exportTo: ["."], ports: [{number: 80, name: http, protocol: HTTP}], resolution: DNS}
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: ours, namespace: blog}
spec: {hosts: [ours.example.net], exportTo: [shop], ports: [{number: 80, name: http, protocol: HTTP}], resolution: DNS}
---
` + httpRoute("a", `[{backendRefs: [{group: networking.istio.io, kind: Hostname, name: own.example.net, port: 80}]}]`) +
			httpRoute("b", `[{backendRefs: [{group: networking.istio.io, kind: Hostname, name: ours.example.net, port: 80}]}]`) +
			httpRoute("c", `[{backendRefs: [{group: networking.istio.io, kind: Hostname, name: pay.shop.svc.cluster.local, port: 80}]}]`),
		[]string{"HTTPRoute/shop/a parents ResolvedRefs", "HTTPRoute/shop/b parents ResolvedRefs", "HTTPRoute/shop/c parents ResolvedRefs"},
		[]string{"False BackendNotFound 1", "True ResolvedRefs 1", "True ResolvedRefs 1"},
	},
	{
		"G28 entries of other controllers stay, ours for former parents go", `
kind: HTTPRoute
metadata: {name: r, namespace: shop}
spec: {parentRefs: [{name: nobody}], rules: [{` + toCart + `}]}
status:
  parents:
  - {controllerName: example.com/other, parentRef: {name: nobody}, conditions: [{type: Accepted, status: "True", reason: Fine, observedGeneration: 7}]}
  - {controllerName: istio.io/gateway-controller, parentRef: {name: gone}, conditions: [{type: Accepted, status: "True", reason: Accepted}]}`,
		[]string{"HTTPRoute/shop/r"},
		[]string{"{parents:[{conditions:{Accepted:True Fine 7},controllerName:example.com/other,parentRef:{name:nobody},supportedKinds:null}]}"},
	},
	{
		"A ListenerSet that the Gateway does not allow, and its route", `
kind: ListenerSet
metadata: {name: extra, namespace: shop}
spec: {parentRef: {name: edge, namespace: infra}, listeners: [{name: alt, port: 8080, protocol: HTTP}]}
---
kind: HTTPRoute
metadata: {name: r, namespace: shop}
spec: {parentRefs: [{kind: ListenerSet, name: extra}], rules: [{` + toCart + `}]}`,
		[]string{"ListenerSet/shop/extra", "HTTPRoute/shop/r", "http"},
		[]string{"{conditions:{Accepted:False NotAllowed 1,Programmed:False NotAllowed 1}}", "null", ""},
	},
	{
		"G2, G3 a ListenerSet with HTTPS on a port with HTTP, and one on a port of a conflict", `
kind: Gateway
metadata: {name: edge, namespace: infra}
spec:
  gatewayClassName: istio
  allowedListeners: {namespaces: {from: All}}
  listeners:
  - {name: web, hostname: a.example.com, port: 80, protocol: HTTP, allowedRoutes: {namespaces: {from: All}}}
  - {name: one, port: 81, protocol: HTTP}
  - {name: two, port: 81, protocol: TCP}
---
kind: ListenerSet
metadata: {name: extra, namespace: shop}
spec:
  parentRef: {name: edge, namespace: infra}
  listeners:
  - {name: sec, hostname: b.example.com, port: 80, protocol: HTTPS, tls: {options: {gateway.istio.io/tls-terminate-mode: ISTIO_MUTUAL}}}
  - {name: free, port: 81, protocol: TCP}
---
` + httpRoute("r", `[{`+toCart+`}]`),
		[]string{
			"Gateway/infra/edge listeners Conflicted", "Gateway/infra/edge Accepted", "ListenerSet/shop/extra listeners Conflicted", "hosts",
			"HTTPRoute/shop/r parents Accepted",
		},
		[]string{
			"True ProtocolConflict 2, True ProtocolConflict 2, False NoConflicts 2", "True ListenersNotValid 2",
			"False NoConflicts 1, True ProtocolConflict 1", "[infra/Gateway/edge/web.infra] [*]", "True Accepted 1",
		},
	},
	{
		"A policy for a port that the Service does not have", `
{kind: BackendTLSPolicy, metadata: {name: a, namespace: shop}, spec: {targetRefs: [{group: "", kind: Service, name: cart, sectionName: https}],
  validation: {hostname: a, wellKnownCACertificates: System}}}`,
		[]string{"BackendTLSPolicy/shop/a ancestors Accepted", "BackendTLSPolicy/shop/a ancestors ResolvedRefs"},
		[]string{"False TargetNotFound 1", "True ResolvedRefs 1"},
	},
	{
		"G55 policies for one port, for all, and again for one", `
{kind: BackendTLSPolicy, metadata: {name: a, namespace: shop}, spec: {targetRefs: [{group: "", kind: Service, name: cart, sectionName: http}],
  validation: {hostname: a, wellKnownCACertificates: System}}}
---
{kind: BackendTLSPolicy, metadata: {name: b, namespace: shop}, spec: {targetRefs: [{group: "", kind: Service, name: cart}],
  validation: {hostname: b, caCertificateRefs: [{group: "", kind: Secret, name: none}]}}}
---
{kind: BackendTLSPolicy, metadata: {name: c, namespace: shop}, spec: {targetRefs: [{group: "", kind: Service, name: cart, sectionName: http}, {group: "", kind: Service, name: nobody}],
  validation: {hostname: c, wellKnownCACertificates: System}}}`,
		[]string{
			"BackendTLSPolicy/shop/a ancestors Accepted", "BackendTLSPolicy/shop/b ancestors Accepted", "BackendTLSPolicy/shop/b ancestors ResolvedRefs",
			"BackendTLSPolicy/shop/c ancestors Accepted",
		},
		[]string{"True Accepted 1", "False NoValidCACertificate 1", "False InvalidCACertificateRef 1", "False Conflicted 1, False TargetNotFound 1"},
	},
}

// TestPolicyOfPorts: G56, with and without an additional policy of one port: no connection is in
// plain text.
func TestPolicyOfPorts(t *testing.T) {
	t.Parallel()
	sys := newSystem()
	i := slices.IndexFunc(decisions, func(d decision) bool { return strings.HasPrefix(d.name, "G55") })
	if err := sys.applyAll(world + decisions[i].objects); err != nil {
		t.Fatal(err)
	}
	const want = "{host:cart.shop.svc.cluster.local,trafficPolicy:{portLevelSettings:[{port:{number:80},tls:{mode:SIMPLE,sni:a}}]," +
		"tls:{credentialName:invalid://,mode:SIMPLE,sni:b}}}"
	rules := sys.state().destinationRules
	if got := compact(dig(rules["shop/cart.shop.svc.cluster.local"], "spec")); got != want || len(rules) != 1 {
		t.Errorf("%d rules, got %s, want %s", len(rules), got, want)
	}
}
