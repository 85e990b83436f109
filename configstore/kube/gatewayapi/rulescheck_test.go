// SPDX-License-Identifier: Apache-2.0

package gatewayapi

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestRules: each rule corrects a recording that has the rule's defect, and does not correct a
// recording with another error in the same place.
func TestRules(t *testing.T) {
	t.Parallel()
	for _, c := range ruleCases {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			sys := newSystem()
			for _, objects := range append([]string{world}, c.objects...) {
				if err := sys.applyAll(objects); err != nil {
					t.Fatal(err)
				}
			}
			recorded := sys.observe()
			c.defect(recorded)
			for _, d := range sys.differences("defect", recorded) {
				t.Error(d)
			}
			if c.mistake == nil {
				return
			}
			recorded = sys.observe()
			c.mistake(recorded)
			if len(sys.differences("mistake", recorded)) == 0 {
				t.Error("another mistake is not seen")
			}
		})
	}
}

// object returns the object of a section whose name or parents have a text.
func object(s section, with string) map[string]any {
	i := slices.IndexFunc(s.list, func(m map[string]any) bool {
		return strings.Contains(fmt.Sprint(m["kind"], "/", m["name"], " ", m["annotations"]), with)
	})
	return s.list[i]
}

// setCondition changes a condition of an entry of a status.
func setCondition(of map[string]any, list string, i int, kind, status, reason string) {
	entry := of["status"].(map[string]any)
	if list != "" {
		entry = each(entry[list])[i]
	}
	for _, c := range each(entry["conditions"]) {
		if c["type"] == kind {
			c["status"], c["reason"] = status, reason
		}
	}
}

func httpOf(o *observation, i int) map[string]any {
	return each(dig(o.VirtualServices.list[0], "spec", "http"))[i]
}

// twoListeners is a Gateway with a listener for all hosts and one for a.example.com.
const twoListeners = `
kind: Gateway
metadata: {name: edge, namespace: infra}
spec:
  gatewayClassName: istio
  listeners:
  - {name: all, port: 443, protocol: TLS, tls: {mode: Passthrough}, allowedRoutes: {namespaces: {from: All}}}
  - {name: a, hostname: a.example.com, port: 443, protocol: TLS, tls: {mode: Passthrough}, allowedRoutes: {namespaces: {from: All}}}
---
kind: TLSRoute
metadata: {name: t, namespace: shop}
spec: {parentRefs: [{name: edge, namespace: infra}], hostnames: [a.example.com, b.example.com], rules: [{backendRefs: [{name: cart, port: 80}]}]}`

var ruleCases = []struct {
	rule            string
	objects         []string
	defect, mistake func(o *observation)
}{
	{
		"G1",
		[]string{
			httpRoute("r", `[{`+toCart+`}]`),
			strings.Replace(world[strings.LastIndex(world, "kind: Gateway"):], "{namespaces", "{kinds: [{kind: GRPCRoute}], namespaces", 1),
		},
		func(o *observation) {
			setCondition(object(o.Status, "HTTPRoute/r"), "parents", 0, accepted, "True", "Accepted")
			each(object(o.Status, "Gateway/edge")["status"].(map[string]any)["listeners"])[0]["attachedRoutes"] = 1.0
		},
		func(o *observation) {
			setCondition(object(o.Status, "Gateway/edge"), "listeners", 0, accepted, "False", "Accepted")
		},
	},
	{
		"G5",
		[]string{`{kind: Gateway, metadata: {name: edge, namespace: infra}, spec: {gatewayClassName: istio, listeners: [{name: sec, port: 443, protocol: HTTPS}]}}`},
		func(o *observation) {
			setCondition(object(o.Status, "Gateway/edge"), "listeners", 0, programmed, "True", "Programmed")
			setCondition(object(o.Status, "Gateway/edge"), "", 0, accepted, "True", "Accepted")
		},
		func(o *observation) {
			setCondition(object(o.Status, "Gateway/edge"), "listeners", 0, resolvedRefs, "False", "InvalidCertificateRef")
		},
	},
	{
		"G22",
		[]string{httpRoute("r", `[{`+toCart+`}]`), strings.Replace(grpcRoute("r", `[{`+toCart+`}]`), "rules", "hostnames: [a.example.com], rules", 1)},
		func(o *observation) { o.VirtualServices.list = o.VirtualServices.list[:1] },
		func(o *observation) { o.Gateways.list = nil },
	},
	{
		"G26",
		[]string{httpRoute("r", `[{matches: [{headers: [{name: X-A, value: one}, {name: x-a, value: two}]}], `+toCart+`}]`)},
		func(o *observation) {
			each(httpOf(o, 0)["match"])[0]["headers"].(map[string]any)["x-a"] = map[string]any{"exact": "two"}
		},
		func(o *observation) {
			each(httpOf(o, 0)["match"])[0]["headers"].(map[string]any)["x-b"] = map[string]any{"exact": "two"}
		},
	},
	{
		"G31",
		[]string{twoListeners},
		func(o *observation) {
			v := object(o.VirtualServices, "tls~0")
			v["spec"].(map[string]any)["hosts"] = []any{"a.example.com", "b.example.com"}
			each(each(dig(v, "spec", "tls"))[0]["match"])[0]["sniHosts"] = []any{"a.example.com", "b.example.com"}
		},
		func(o *observation) {
			object(o.VirtualServices, "tls~0")["spec"].(map[string]any)["hosts"] = []any{"b.example.com", "c.example.com"}
		},
	},
	{
		"G33",
		[]string{grpcRoute("g", `[{filters: [{type: RequestMirror, requestMirror: {backendRef: {name: nobody, port: 80}}}], `+toCart+`}]`)},
		func(o *observation) { o.VirtualServices.list = nil },
		func(o *observation) { o.Gateways.list = nil },
	},
	{
		"G41",
		[]string{httpRoute("r", `[{filters: [{type: URLRewrite, urlRewrite: {path: {type: ReplaceFullPath, replaceFullPath: '/a\1'}}}], `+toCart+`}]`)},
		func(o *observation) {
			httpOf(o, 0)["rewrite"].(map[string]any)["uriRegexRewrite"].(map[string]any)["rewrite"] = `/a\1`
		},
		func(o *observation) {
			httpOf(o, 0)["rewrite"].(map[string]any)["uriRegexRewrite"].(map[string]any)["match"] = `/a`
		},
	},
	{
		"G50",
		[]string{"{apiVersion: v1, kind: Namespace, metadata: {name: blog}}\n---\n" + `
kind: HTTPRoute
metadata: {name: r, namespace: blog}
spec: {parentRefs: [{group: "", kind: Service, name: cart, namespace: shop}], rules: [{` + strings.Replace(toCart, "cart,", "cart, namespace: shop,", 1) + `}]}`},
		func(o *observation) { delete(o.VirtualServices.list[0]["spec"].(map[string]any), "exportTo") },
		func(o *observation) { o.VirtualServices.list[0]["spec"].(map[string]any)["exportTo"] = []any{"*"} },
	},
	{
		"G51",
		[]string{`
kind: TCPRoute
metadata: {name: r, namespace: shop}
spec: {parentRefs: [{group: "", kind: Service, name: cart, port: 81}], rules: [{` + toCart + `}]}`},
		func(o *observation) {
			setCondition(object(o.Status, "TCPRoute/r"), "parents", 0, accepted, "True", "Accepted")
			o.VirtualServices.list = []map[string]any{{
				"namespace": "shop", "name": "x", "annotations": map[string]any{annotationParents: "TCPRoute/r.shop", annotationRouteSemantics: semanticsGateway},
				"spec": map[string]any{
					"hosts": []any{"cart.shop.svc.cluster.local"}, "gateways": []any{"mesh"},
					"tcp": []any{map[string]any{"match": []any{map[string]any{"port": 81.0}}}},
				},
			}}
		},
		func(o *observation) {
			setCondition(object(o.Status, "TCPRoute/r"), "parents", 0, accepted, "False", "Accepted")
		},
	},
}
