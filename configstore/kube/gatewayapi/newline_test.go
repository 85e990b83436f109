// SPDX-License-Identifier: Apache-2.0

package gatewayapi_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/configstore/kube/gatewayapi"
	"github.com/pilotkit/pilotkit/configstore/manifest"
	"github.com/pilotkit/pilotkit/configstore/memory"
)

// badObjects returns objects of one tenant with texts that proxies reject, but that the CRDs of an
// API server, or a directory, admit. status is the object whose status reports the error, of a
// kind, with a condition.
func badObjects() map[string]struct{ object, condition string } {
	route := func(kind, rest string) string {
		return "apiVersion: gateway.networking.k8s.io/v1\nkind: " + kind + "\nmetadata: {name: bad, namespace: shop}\nspec:\n" + rest
	}
	http := func(rule string) string {
		return route("HTTPRoute", "  parentRefs: [{name: edge}]\n  hostnames: [bad.example.com]\n  rules: ["+rule+"]\n")
	}
	const to = `backendRefs: [{group: networking.istio.io, kind: Hostname, name: a.internal, port: 8080}]`
	const unsupported = "Accepted=False UnsupportedValue"
	out := map[string]struct{ object, condition string }{}
	for name, rule := range map[string]string{
		"request header":            `{filters: [{type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: a, value: "x\ny"}]}}], ` + to + `}`,
		"response header":           `{filters: [{type: ResponseHeaderModifier, responseHeaderModifier: {add: [{name: a, value: "x\r"}]}}], ` + to + `}`,
		"backend's request header":  `{backendRefs: [{group: networking.istio.io, kind: Hostname, name: a.internal, port: 8080, filters: [{type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: a, value: "\x01"}]}}]}]}`,
		"backend's response header": `{backendRefs: [{group: networking.istio.io, kind: Hostname, name: a.internal, port: 8080, filters: [{type: ResponseHeaderModifier, responseHeaderModifier: {set: [{name: a, value: "\x7f"}]}}]}]}`,
		"removed header":            `{filters: [{type: RequestHeaderModifier, requestHeaderModifier: {remove: ["a\n"]}}], ` + to + `}`,
		"full path of a rewrite":    `{filters: [{type: URLRewrite, urlRewrite: {path: {type: ReplaceFullPath, replaceFullPath: "/x\n"}}}], ` + to + `}`,
		"prefix of a rewrite":       `{filters: [{type: URLRewrite, urlRewrite: {path: {type: ReplacePrefixMatch, replacePrefixMatch: "/x\n"}}}], ` + to + `}`,
		"host of a rewrite":         `{filters: [{type: URLRewrite, urlRewrite: {hostname: "x\n"}}], ` + to + `}`,
		"full path of a redirect":   `{filters: [{type: RequestRedirect, requestRedirect: {path: {type: ReplaceFullPath, replaceFullPath: "/x\n"}}}]}`,
		"prefix of a redirect":      `{filters: [{type: RequestRedirect, requestRedirect: {path: {type: ReplacePrefixMatch, replacePrefixMatch: "/x\n"}}}]}`,
		"scheme of a redirect":      `{filters: [{type: RequestRedirect, requestRedirect: {scheme: "x\n"}}]}`,
		"CORS headers":              `{filters: [{type: CORS, cors: {allowOrigins: ["*"], allowHeaders: ["x\n"], exposeHeaders: ["y\n"]}}], ` + to + `}`,
		"matched header":            `{matches: [{headers: [{name: "x\n", value: a}]}], ` + to + `}`,
		"matched parameter":         `{matches: [{queryParams: [{name: "x\n", value: a}]}], ` + to + `}`,
		"name of a rule":            `{name: "x\n", ` + to + `}`,
	} {
		out[name] = struct{ object, condition string }{http(rule), unsupported}
	}
	modifier := `filters: [{type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: a, value: "x\ny"}]}}], `
	more := map[string][2]string{
		"GRPCRoute":           {route("GRPCRoute", "  parentRefs: [{name: edge}]\n  rules: [{"+modifier+to+"}]\n"), unsupported},
		"route of the mesh":   {route("HTTPRoute", "  parentRefs: [{group: networking.istio.io, kind: ServiceEntry, name: a}]\n  rules: [{"+modifier+to+"}]\n"), unsupported},
		"hostname":            {route("HTTPRoute", "  parentRefs: [{name: edge}]\n  hostnames: [\"x\\n\"]\n  rules: [{"+to+"}]\n"), unsupported},
		"hostname of TLS":     {route("TLSRoute", "  parentRefs: [{group: networking.istio.io, kind: ServiceEntry, name: a}]\n  hostnames: [\"x\\n\"]\n  rules: [{"+to+"}]\n"), unsupported},
		"one of two hosts":    {route("HTTPRoute", "  parentRefs: [{name: edge}]\n  hostnames: [\"x\\n\", bad.example.com]\n  rules: [{"+to+"}]\n"), "PartiallyInvalid=True UnsupportedValue"},
		"host of a listener":  {route("Gateway", "  gatewayClassName: istio\n  listeners: [{name: web, port: 81, protocol: HTTP, hostname: \"x\\n\"}]\n"), "Accepted=False ListenersNotValid"},
		"name of a listener":  {route("Gateway", "  gatewayClassName: istio\n  listeners: [{name: \"x\\n\", port: 81, protocol: HTTP}]\n"), "Accepted=False ListenersNotValid"},
		"host of a policy":    {route("BackendTLSPolicy", "  targetRefs: [{group: networking.istio.io, kind: ServiceEntry, name: a}]\n  validation: {hostname: \"x\\n\", wellKnownCACertificates: System}\n"), "Accepted=False Invalid"},
		"names of a policy":   {route("BackendTLSPolicy", "  targetRefs: [{group: networking.istio.io, kind: ServiceEntry, name: a}]\n  validation: {hostname: x, wellKnownCACertificates: System, subjectAltNames: [{type: URI, uri: \"spiffe://x\\n\"}]}\n"), "Accepted=False Invalid"},
		"section of a policy": {route("BackendTLSPolicy", "  targetRefs: [{group: networking.istio.io, kind: ServiceEntry, name: a, sectionName: \"x\\n\"}]\n  validation: {hostname: x, wellKnownCACertificates: System}\n"), "Accepted=False TargetNotFound"},
	}
	for name, c := range more {
		out[name] = struct{ object, condition string }{c[0], c[1]}
	}
	return out
}

// TestOneBadObject: an invalid object of one tenant removes no Gateways and routes of other
// tenants, neither in a new process nor in a running one. Its status reports the error, and its
// deletion restores the state without it.
func TestOneBadObject(t *testing.T) {
	data, err := os.ReadFile("testdata/cases/newline.yaml")
	if err != nil {
		t.Fatal(err)
	}
	all := string(data)
	i := strings.LastIndex(all, "---\n")
	good, bad := all[:i], all[i+4:]
	objects := badObjects()
	objects["header value of a block scalar"] = struct{ object, condition string }{bad, "Accepted=False UnsupportedValue"}
	without := newDirectory(t, gatewayapi.CacheOptions{})
	without.write("good.yaml", good)
	want := published(without.cache)
	for name, c := range objects {
		t.Run(name, func(t *testing.T) {
			fresh := newDirectory(t, gatewayapi.CacheOptions{})
			if errs := fresh.write("all.yaml", good+"---\n"+c.object); len(errs) > 0 {
				t.Fatal(errs)
			}
			running := newDirectory(t, gatewayapi.CacheOptions{})
			running.write("good.yaml", good)
			running.write("bad.yaml", c.object)
			for _, d := range []*directory{fresh, running} {
				if lost := missing(want, published(d.cache)); len(lost) > 0 {
					t.Errorf("lost: %v", lost)
				}
				if errs := d.cache.Errors(); len(errs) > 0 {
					t.Errorf("errors: %v", errs)
				}
				if got := conditions(d.cache); !strings.Contains(got, c.condition) {
					t.Errorf("%q has no %q", got, c.condition)
				}
			}
			if got := published(fresh.cache); !slices.Equal(got, published(running.cache)) {
				t.Errorf("fresh %v, running %v", got, published(running.cache))
			}
			running.write("bad.yaml", "")
			if got := published(running.cache); !slices.Equal(got, want) {
				t.Errorf("afterwards %v, want %v", got, want)
			}
		})
	}
}

// TestBadRuleAnswers500: the other rules of a route stay, and the invalid rule responds with 500.
func TestBadRuleAnswers500(t *testing.T) {
	d := newDirectory(t, gatewayapi.CacheOptions{})
	d.write("a.yaml", edgeClass+"---\n"+edgeGateway+"---\n"+cartEntry+"---\n"+strings.Replace(cartRoute, "  rules:", `  rules:
  - matches: [{path: {value: /bad}}]
    filters: [{type: ResponseHeaderModifier, responseHeaderModifier: {set: [{name: a, value: "x\n"}]}}]
    backendRefs: [{group: networking.istio.io, kind: Hostname, name: cart.internal, port: 8080}]`, 1))
	list := d.cache.List(istio.VirtualService, "")
	if len(list) != 1 {
		t.Fatalf("%d VirtualServices", len(list))
	}
	routes := list[0].Spec.(*networking.VirtualService).GetHttp()
	if len(routes) != 2 || routes[0].GetDirectResponse().GetStatus() != 500 || routes[0].GetMatch()[0].GetUri().GetPrefix() != "/bad" || len(routes[1].GetRoute()) != 1 {
		t.Errorf("routes %v", routes)
	}
	const want = `PartiallyInvalid=True UnsupportedValue: Dropped Rule: rule 0: headers.response.set[a]: must not hold control characters, is "x\n"`
	if got := conditions(d.cache); !strings.Contains(got, want) {
		t.Errorf("conditions %q", got)
	}
}

// published returns the keys of a cache's configs.
func published(c *gatewayapi.Cache) []string {
	var out []string
	for _, kind := range []configstore.GroupVersionKind{istio.DestinationRule, istio.Gateway, istio.VirtualService} {
		for _, config := range c.List(kind, "") {
			out = append(out, config.Key().Object())
		}
	}
	return out
}

func missing(want, got []string) []string {
	return slices.DeleteFunc(slices.Clone(want), func(s string) bool { return slices.Contains(got, s) })
}

// conditions returns the conditions of all objects with the name bad or cart.
func conditions(c *gatewayapi.Cache) string {
	var out strings.Builder
	for key, status := range c.Snapshot().Statuses() {
		if key.Name != "bad" && key.Name != "cart" {
			continue
		}
		switch s := status.(type) {
		case *gatewayv1.RouteStatus:
			for _, parent := range s.Parents {
				for _, condition := range parent.Conditions {
					out.WriteString(condition.Type + "=" + string(condition.Status) + " " + condition.Reason + ": " + condition.Message + "\n")
				}
			}
		case *gatewayv1.GatewayStatus:
			for _, condition := range s.Conditions {
				out.WriteString(condition.Type + "=" + string(condition.Status) + " " + condition.Reason + "\n")
			}
		case *gatewayv1.PolicyStatus:
			for _, ancestor := range s.Ancestors {
				for _, condition := range ancestor.Conditions {
					out.WriteString(condition.Type + "=" + string(condition.Status) + " " + condition.Reason + "\n")
				}
			}
		}
	}
	return out.String()
}

// TestUnknownFieldsOfGrants: an unknown field may restrict a ReferenceGrant. A ReferenceGrant with
// an unknown field at any depth grants nothing, and reports that; without the field, it grants
// again.
func TestUnknownFieldsOfGrants(t *testing.T) {
	source := memory.NewController(memory.Make(gatewayapi.Schemas().Union(istio.Schemas())))
	cache := gatewayapi.NewCache(source)
	apply := func(text string) {
		t.Helper()
		if err := manifest.Apply(source.Store, []byte(text), manifest.Options{}); err != nil {
			t.Fatal(err)
		}
		source.Drain()
		cache.HasSynced()
		cache.Drain()
	}
	grant := func(spec string) string {
		return "apiVersion: gateway.networking.k8s.io/v1beta1\nkind: ReferenceGrant\nmetadata: {name: g, namespace: bank}\nspec: " + spec
	}
	apply(edgeClass + "---\n" + edgeGateway + "---\n" + strings.ReplaceAll(cartRoute, "cart.internal", "db.bank.svc.cluster.local") + "---\n" +
		strings.ReplaceAll(strings.ReplaceAll(cartEntry, "cart.internal", "db.bank.svc.cluster.local"), "namespace: shop", "namespace: bank"))
	granted := func() bool {
		return cache.List(istio.VirtualService, "")[0].Spec.(*networking.VirtualService).GetHttp()[0].GetRoute()[0].GetDestination().GetHost() != ""
	}
	const from, to = "{group: gateway.networking.k8s.io, kind: HTTPRoute, namespace: shop}", `{group: "", kind: Service}`
	if granted() {
		t.Error("no grant is needed")
	}
	for spec, want := range map[string]string{
		"{from: [" + from + "], to: [" + to + "]}":                                                         "",
		"{from: [" + from + "], to: [" + to + "], until: tomorrow}":                                        "spec.until",
		"{from: [" + strings.Replace(from, "}", ", only: {names: [a]}}", 1) + "], to: [" + to + "]}":       "spec.from[0].only",
		"{from: [" + from + "], to: [" + strings.Replace(to, "}", ", selector: {a: b}}", 1) + "]}":         "spec.to[0].selector",
		"{from: [" + from + "], to: [" + to + ", " + strings.Replace(to, "}", ", except: [db]}", 1) + "]}": "spec.to[1].except",
	} {
		apply(grant(spec))
		errs := cache.Errors()
		if granted() != (want == "") || (want == "") != (len(errs) == 0) {
			t.Errorf("%s: granted %t, errors %v", spec, granted(), errs)
		}
		if want == "" || len(errs) == 0 {
			continue
		}
		if text := want + ": unknown field: the ReferenceGrant has no effect"; errs[0].Err.Error() != text || errs[0].Object.Name != "g" {
			t.Errorf("%v, want %s", errs[0], text)
		}
		if problems := cache.SourceState().Problems; len(problems) != 1 || problems[0].Object != errs[0].Object {
			t.Errorf("problems %v", problems)
		}
	}
	apply(grant("{from: [" + from + "], to: [" + to + "]}"))
	if !granted() || len(cache.Errors()) > 0 {
		t.Errorf("granted %t, errors %v", granted(), cache.Errors())
	}
}
