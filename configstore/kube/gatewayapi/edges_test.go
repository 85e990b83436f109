// SPDX-License-Identifier: Apache-2.0

package gatewayapi

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// edgeDecisions are cases about values at the edge of what a field may have.
var edgeDecisions = []decision{
	{
		"G67 the timeout of a backend beside retries that are off is that of the request",
		httpRoute("r", `[{retry: {attempts: 0}, timeouts: {request: 5s, backendRequest: 2s}, `+toCart+`}]`),
		[]string{"http"},
		[]string{"[{match:[{uri:{prefix:/}}],name:shop.r.0,retries:{},route:[{destination:{host:cart.shop.svc.cluster.local,port:{number:80}}}],timeout:2s}]"},
	},
	{
		"G46 regular expressions that Envoys reject",
		httpRoute("r", `[{matches: [{path: {type: RegularExpression, value: ""}}], `+toCart+`},
			{matches: [{headers: [{type: RegularExpression, name: a, value: '\p{Letter}+'}]}], `+toCart+`},
			{matches: [{queryParams: [{type: RegularExpression, name: a, value: '(\pL{100}){10}'}]}], `+toCart+`}]`),
		[]string{"http", "HTTPRoute/shop/r parents Accepted"},
		[]string{"", "False UnsupportedValue 1"},
	},
	{
		"G68 alternatives of a service or a method",
		grpcRoute("r", `[{matches: [{method: {type: RegularExpression, service: 'a|b', method: 'Get|Set'}}], `+toCart+`}]`),
		[]string{"http"},
		[]string{"[{match:[{uri:{regex:/(?:a|b)/(?:Get|Set)}}],name:shop.r.0,route:[{destination:{host:cart.shop.svc.cluster.local,port:{number:80}}}]}]"},
	},
	{
		"G69 replaced paths without a slash at the beginning",
		httpRoute("r", `[{filters: [{type: RequestRedirect, requestRedirect: {path: {type: ReplaceFullPath, replaceFullPath: ".example.com"}}}]},
			{filters: [{type: RequestRedirect, requestRedirect: {path: {type: ReplacePrefixMatch, replacePrefixMatch: a/}}}]},
			{filters: [{type: URLRewrite, urlRewrite: {path: {type: ReplaceFullPath, replaceFullPath: ""}}}], `+toCart+`},
			{filters: [{type: URLRewrite, urlRewrite: {path: {type: ReplacePrefixMatch, replacePrefixMatch: a}}}], `+toCart+`}]`),
		[]string{"http"},
		[]string{
			"[{match:[{uri:{prefix:/}}],name:shop.r.0,redirect:{derivePort:FROM_REQUEST_PORT,redirectCode:302,uri:/.example.com}}," +
				"{match:[{uri:{prefix:/}}],name:shop.r.1,redirect:{derivePort:FROM_REQUEST_PORT,prefixRewrite:/a,redirectCode:302}}," +
				"{match:[{uri:{prefix:/}}],name:shop.r.2,rewrite:{uriRegexRewrite:{match:/.*,rewrite:/}},route:[{destination:{host:cart.shop.svc.cluster.local,port:{number:80}}}]}," +
				"{match:[{uri:{prefix:/}}],name:shop.r.3,rewrite:{uri:/a},route:[{destination:{host:cart.shop.svc.cluster.local,port:{number:80}}}]}]",
		},
	},
	{
		"listeners of one name", `
kind: Gateway
metadata: {name: edge, namespace: infra}
spec:
  gatewayClassName: istio
  listeners:
  - {name: web, port: 80, protocol: HTTP, allowedRoutes: {namespaces: {from: All}}}
  - {name: web, port: 81, protocol: HTTP, allowedRoutes: {namespaces: {from: All}}}
---` + "\n" + strings.Replace(httpRoute("r", `[{`+toCart+`}]`), "name: edge,", "name: edge, sectionName: web,", 1),
		[]string{"servers", "Gateway/infra/edge listeners Accepted", "HTTPRoute/shop/r parents Accepted"},
		[]string{"[{hosts:[*/*],port:{name:default,number:80,protocol:HTTP}}]", "True Accepted 2, False Invalid 2", "True Accepted 1"},
	},
	{
		"a ListenerSet of a parent that is no Gateway", `
kind: Gateway
metadata: {name: edge, namespace: infra}
spec: {gatewayClassName: istio, allowedListeners: {namespaces: {from: All}}, listeners: [{name: web, port: 80, protocol: HTTP}]}
---
kind: ListenerSet
metadata: {name: extra, namespace: infra}
spec: {parentRef: {group: example.com, kind: Edge, name: edge}, listeners: [{name: alt, port: 8080, protocol: HTTP}]}
---
kind: ListenerSet
metadata: {name: more, namespace: infra}
spec: {parentRef: {kind: ListenerSet, name: edge}, listeners: [{name: alt, port: 8081, protocol: HTTP}]}`,
		[]string{"servers", "ListenerSet/infra/extra Accepted", "ListenerSet/infra/more Accepted"},
		[]string{"[{hosts:[infra/*],port:{name:default,number:80,protocol:HTTP}}]", "Unknown Pending <nil>", "Unknown Pending <nil>"},
	},
}

// TestStatusesFit: statuses have no more entries than the CRDs admit, because otherwise an API server refuses all of
// them. The entries of other controllers stay.
func TestStatusesFit(t *testing.T) {
	gateway := &gatewayv1.Gateway{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "edge"}}
	gateway.Spec.GatewayClassName = "istio"
	gateway.Spec.Listeners = []gatewayv1.Listener{{Name: "web", Port: 80, Protocol: gatewayv1.HTTPProtocolType}}
	route := &gatewayv1.HTTPRoute{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "cart"}}
	route.Spec.ParentRefs = []gatewayv1.ParentReference{{Name: "edge"}, {Name: "edge", SectionName: new(gatewayv1.SectionName("web"))}}
	bad := gatewayv1.HTTPHeaderMatch{Type: new(gatewayv1.HeaderMatchRegularExpression), Name: "a", Value: "(" + strings.Repeat("a", 4000)}
	served := &Provided{Message: strings.Repeat("long ", 10000)}
	for i := range 31 {
		served.Addresses = append(served.Addresses, gatewayv1.GatewayStatusAddress{Value: fmt.Sprint("192.0.2.", i)})
		route.Status.Parents = append(route.Status.Parents, gatewayv1.RouteParentStatus{ControllerName: gatewayv1.GatewayController(fmt.Sprint("example.com/", i))})
		route.Spec.Rules = append(route.Spec.Rules, gatewayv1.HTTPRouteRule{Matches: []gatewayv1.HTTPRouteMatch{{Headers: []gatewayv1.HTTPHeaderMatch{bad}}}})
	}
	after := NewConverter(Options{Provided: true}).Apply(Set(gateway), Set(route), setProvided(Key{"shop", "edge"}, served)).After
	parents := after.Status(ObjectKey{KindHTTPRoute, Key{"shop", "cart"}}).(*gatewayv1.RouteStatus).Parents
	if len(parents) != 32 || parents[30].ControllerName != "example.com/30" || parents[31].ControllerName != ControllerName {
		t.Errorf("%d parents", len(parents))
	}
	status := after.Status(ObjectKey{KindGateway, Key{"shop", "edge"}}).(*gatewayv1.GatewayStatus)
	if len(status.Addresses) != 16 {
		t.Errorf("%d addresses", len(status.Addresses))
	}
	for _, condition := range append(status.Conditions, parents[31].Conditions...) {
		if n := len(condition.Message); n > 32768 {
			t.Errorf("%s has a message of %d bytes", condition.Type, n)
		}
	}
}
