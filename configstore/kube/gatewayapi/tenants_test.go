// SPDX-License-Identifier: Apache-2.0

package gatewayapi

import "strings"

// filtered returns a route with one rule with a filter.
func filtered(filter string) string { return httpRoute("r", `[{filters: [`+filter+`], `+toCart+`}]`) }

// bank is another tenant, with a Service that its clients see, one that is exported to no
// namespace, and routes of shop for them.
const bank = `
{apiVersion: v1, kind: Service, metadata: {name: db, namespace: bank}, spec: {ports: [{name: http, port: 80}]}}
---
{apiVersion: v1, kind: Service, metadata: {name: own, namespace: bank, annotations: {networking.istio.io/exportTo: "."}}, spec: {ports: [{name: http, port: 80}]}}
---
`

// hostname returns a route of shop to a backend of kind Hostname.
func hostname(route, name string) string {
	return httpRoute(route, `[{backendRefs: [{group: networking.istio.io, kind: Hostname, name: `+name+`, port: 80}]}]`)
}

const bankGrant = `
{kind: ReferenceGrant, metadata: {name: g, namespace: bank}, spec: {from: [{group: gateway.networking.k8s.io, kind: HTTPRoute, namespace: shop}], to: [{group: "", kind: Service}]}}
---
`

// consumerRoute returns a route of shop, of any kind, for a parent in the mesh.
func consumerRoute(kind, parent string) string {
	return "{kind: " + kind + ", metadata: {name: r, namespace: shop}, spec: {parentRefs: [" + parent + "], rules: [{" + toCart + "}]}}\n---\n"
}

const bankDB = `{group: "", kind: Service, name: db, namespace: bank}`

// frontend returns a Gateway that validates clients by a ConfigMap.
func frontend(authority string) string {
	return `
kind: Gateway
metadata: {name: edge, namespace: infra}
spec:
  gatewayClassName: istio
  tls: {frontend: {default: {validation: {caCertificateRefs: [{group: "", kind: ConfigMap, name: ca}]}}}}
  listeners: [{name: sec, port: 443, protocol: HTTPS, tls: {options: {gateway.istio.io/tls-terminate-mode: MUTUAL}, certificateRefs: [{name: none}]}}]
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: ca, namespace: infra}, data: {ca.crt: "` + authority + `"}}`
}

// tenantDecisions are cases about the effects of one tenant's objects on others, and about literal
// texts.
var tenantDecisions = []decision{
	{
		"G58 values of headers are literal",
		filtered(`{type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: a, value: "100%"}], add: [{name: b, value: "%ENVIRONMENT(HOME)%"}]}}`) +
			strings.Replace(grpcRoute("g", `[{`+toCart+`, filters: [{type: ResponseHeaderModifier, responseHeaderModifier: {set: [{name: c, value: "%%"}]}}]}]`), "rules", "hostnames: [g.example.com], rules", 1),
		[]string{"http", "HTTPRoute/shop/r parents Accepted"},
		[]string{
			"[{headers:{request:{add:{b:%%ENVIRONMENT(HOME)%%},set:{a:100%%}}},match:[{uri:{prefix:/}}],name:shop.r.0,route:[{destination:{host:cart.shop.svc.cluster.local,port:{number:80}}}]}] " +
				"[{headers:{response:{set:{c:%%%%}}},name:shop.g.0,route:[{destination:{host:cart.shop.svc.cluster.local,port:{number:80}}}]}]",
			"True Accepted 1",
		},
	},
	{
		"G59 the host of a Service of another namespace, without a grant",
		bank + hostname("r", "db.bank.svc.cluster.local") + hostname("n", "none.bank.svc.cluster.local"),
		[]string{"http", "HTTPRoute/shop/r parents ResolvedRefs", "HTTPRoute/shop/n parents ResolvedRefs"},
		[]string{"[{match:[{uri:{prefix:/}}],name:shop.r.0,route:[{destination:{}}]},{match:[{uri:{prefix:/}}],name:shop.n.0,route:[{destination:{}}]}]", "False RefNotPermitted 1", "False RefNotPermitted 1"},
	},
	{
		"G59 with a grant, and one that is not exported",
		bank + bankGrant + hostname("r", "db.bank.svc.cluster.local") + hostname("o", "own.bank.svc.cluster.local"),
		[]string{"http", "HTTPRoute/shop/r parents ResolvedRefs", "HTTPRoute/shop/o parents ResolvedRefs"},
		[]string{"[{match:[{uri:{prefix:/}}],name:shop.r.0,route:[{destination:{host:db.bank.svc.cluster.local,port:{number:80}}}]},{match:[{uri:{prefix:/}}],name:shop.o.0,route:[{destination:{}}]}]", "True ResolvedRefs 1", "False BackendNotFound 1"},
	},
	{
		"G59 a short host is of the route's namespace, also in the VirtualService of another one's",
		strings.Replace(httpRoute("a", `[{matches: [{path: {value: /a}}], backendRefs: [{name: db, port: 80}]}]`), "namespace: shop}, spec", "namespace: bank}, spec", 1) +
			bank + hostname("r", "db"),
		[]string{"http", "HTTPRoute/shop/r parents ResolvedRefs"},
		[]string{
			"[{match:[{uri:{prefix:/a}}],name:bank.a.0,route:[{destination:{host:db.bank.svc.cluster.local,port:{number:80}}}]}," +
				"{match:[{uri:{prefix:/}}],name:shop.r.0,route:[{destination:{host:db.shop.svc.cluster.local,port:{number:80}}}]}]",
			"False BackendNotFound 1",
		},
	},
	{
		"G50 a consumer route of HTTP", bank + consumerRoute("HTTPRoute", bankDB), []string{"exports"}, []string{"db.bank.svc.cluster.local [.]"},
	},
	{
		"G50 a consumer route of gRPC for a port", bank + consumerRoute("GRPCRoute", strings.Replace(bankDB, "}", ", port: 80}", 1)), []string{"exports"}, []string{"db.bank.svc.cluster.local [.]"},
	},
	{"G50 a consumer route of TCP", bank + consumerRoute("TCPRoute", bankDB), []string{"exports"}, []string{"db.bank.svc.cluster.local [.]"}},
	{"G50 a consumer route of TLS", bank + consumerRoute("TLSRoute", bankDB), []string{"exports"}, []string{"db.bank.svc.cluster.local [.]"}},
	{"G50 a producer route", consumerRoute("HTTPRoute", `{group: "", kind: Service, name: cart}`), []string{"exports"}, []string{"cart.shop.svc.cluster.local <nil>"}},
	{
		"G50 a ServiceEntry with the host of another one's Service, and a host of its own", `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: e, namespace: shop}
spec: {hosts: [db.bank.svc.cluster.local, e.example.net], ports: [{number: 80, name: http, protocol: HTTP}], resolution: DNS}
---
` + consumerRoute("HTTPRoute", `{group: networking.istio.io, kind: ServiceEntry, name: e}`),
		[]string{"exports"},
		[]string{"db.bank.svc.cluster.local [.] e.example.net <nil>"},
	},
	{
		"G60 a policy for a ServiceEntry, for a port of it, and for what it cannot be for", `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: e, namespace: shop}
spec: {hosts: [a.example.net, b.example.net], ports: [{number: 80, name: http, protocol: HTTP}, {number: 81, name: more, protocol: HTTP}], resolution: DNS}
---
{kind: BackendTLSPolicy, metadata: {name: p, namespace: shop}, spec: {validation: {hostname: x.test, wellKnownCACertificates: System},
  targetRefs: [{group: networking.istio.io, kind: ServiceEntry, name: e}, {group: gateway.networking.k8s.io, kind: HTTPRoute, name: r}, {group: networking.istio.io, kind: ServiceEntry, name: none}]}}
---
{kind: BackendTLSPolicy, metadata: {name: q, namespace: shop}, spec: {validation: {hostname: y.test, wellKnownCACertificates: System},
  targetRefs: [{group: networking.istio.io, kind: ServiceEntry, name: e, sectionName: more}]}}
---
` + httpRoute("r", `[{backendRefs: [{group: networking.istio.io, kind: Hostname, name: b.example.net, port: 80}]}]`),
		[]string{"rules", "BackendTLSPolicy/shop/p", "BackendTLSPolicy/shop/q ancestors Accepted"},
		[]string{
			"{host:a.example.net,trafficPolicy:{portLevelSettings:[{port:{number:81},tls:{mode:SIMPLE,sni:y.test}}],tls:{mode:SIMPLE,sni:x.test}}} " +
				"{host:b.example.net,trafficPolicy:{portLevelSettings:[{port:{number:81},tls:{mode:SIMPLE,sni:y.test}}],tls:{mode:SIMPLE,sni:x.test}}}",
			"{ancestors:[" +
				"{ancestorRef:{group:gateway.networking.k8s.io,kind:Gateway,name:edge,namespace:infra},conditions:{Accepted:True Accepted 1,ResolvedRefs:True ResolvedRefs 1},controllerName:istio.io/gateway-controller,supportedKinds:null}," +
				"{ancestorRef:{group:gateway.networking.k8s.io,kind:HTTPRoute,name:r},conditions:{Accepted:False Invalid 1,ResolvedRefs:True ResolvedRefs 1},controllerName:istio.io/mesh-controller,supportedKinds:null}," +
				"{ancestorRef:{group:networking.istio.io,kind:ServiceEntry,name:e},conditions:{Accepted:True Accepted 1,ResolvedRefs:True ResolvedRefs 1},controllerName:istio.io/mesh-controller,supportedKinds:null}," +
				"{ancestorRef:{group:networking.istio.io,kind:ServiceEntry,name:none},conditions:{Accepted:False TargetNotFound 1,ResolvedRefs:True ResolvedRefs 1},controllerName:istio.io/mesh-controller,supportedKinds:null}]}",
			"True Accepted 1, True Accepted 1",
		},
	},
	{
		"G61 preflights beside a method, after the other rules for the path", httpRoute("r", `[
  {matches: [{path: {value: /a}, method: GET}, {path: {value: /a}, headers: [{name: x, value: y}]}], filters: [{type: CORS, cors: {allowOrigins: ["https://a.test"]}}], `+toCart+`},
  {matches: [{path: {value: /a}}], `+toCart+`}, {filters: [{type: CORS, cors: {allowOrigins: ["https://a.test"]}}], `+toCart+`},
  {matches: [{path: {value: /b}, method: GET}], filters: [{type: CORS, cors: {allowOrigins: ["https://a.test"]}}, {type: RequestRedirect, requestRedirect: {statusCode: 301}}]}]`),
		[]string{"matches"},
		[]string{
			"[{method:{exact:GET},uri:{prefix:/a}}] [{method:{exact:GET},uri:{prefix:/b}}] [{headers:{x:{exact:y}},uri:{prefix:/a}}] [{uri:{prefix:/a}}] " +
				"[{headers:{access-control-request-method:{exact:GET},origin:{}},method:{exact:OPTIONS},uri:{prefix:/a}}] " +
				"[{headers:{access-control-request-method:{},origin:{}},method:{exact:OPTIONS},uri:{prefix:/a}}] [{uri:{prefix:/}}]",
		},
	},
	{
		"G62 an authority of clients that cannot be read",
		frontend("-----BEGIN CERTIFICATE-----\\nrubbish\\n-----END CERTIFICATE-----"),
		[]string{"Gateway/infra/edge listeners ResolvedRefs", "Gateway/infra/edge listeners Accepted", "servers"},
		[]string{"False InvalidCACertificateRef 2", "False NoValidCACertificate 2", ""},
	},
	{
		"G63 the label of a namespace's name, with and without the Namespace", `
kind: Gateway
metadata: {name: edge, namespace: infra}
spec:
  gatewayClassName: istio
  listeners:
  - {name: known, port: 80, protocol: HTTP, allowedRoutes: {namespaces: {from: Selector, selector: {matchLabels: {kubernetes.io/metadata.name: shop}}}}}
  - {name: unknown, port: 81, protocol: HTTP, allowedRoutes: {namespaces: {from: Selector, selector: {matchExpressions: [{key: kubernetes.io/metadata.name, operator: In, values: [blog, void]}]}}}}
  - {name: closed, port: 82, protocol: HTTP, allowedRoutes: {namespaces: {from: Selector, selector: {matchExpressions: [{key: tier, operator: NotIn, values: [y]}]}}}}
---
` + strings.Replace(httpRoute("b", `[{`+toCart+`}]`), "namespace: shop}, spec", "namespace: blog}, spec", 1) + httpRoute("r", `[{`+toCart+`}]`),
		[]string{"servers", "HTTPRoute/blog/b parents Accepted", "Gateway/infra/edge listeners Accepted", "attached"},
		[]string{
			"[{hosts:[blog/*],port:{name:default,number:81,protocol:HTTP}}] [{hosts:[infra/*,shop/*],port:{name:default,number:82,protocol:HTTP}}] [{hosts:[shop/*],port:{name:default,number:80,protocol:HTTP}}]",
			"True Accepted 1", "True Accepted 2, True Accepted 2, True Accepted 2", "closed 1 known 1 unknown 1",
		},
	},
}
