// SPDX-License-Identifier: Apache-2.0

package realenvoy

import (
	"strings"
	"testing"
)

// elementRules are rules whose prefixes match whole elements.
const elementRules = `
  - match: [{uri: {prefix: /a/b/}}]
    route: [{destination: {host: shop.local.test, subset: two}}]
  - match: [{uri: {prefix: /Fold}, ignoreUriCase: true}]
    rewrite: {uri: /}
    route: [{destination: {host: shop.local.test, subset: two}}]
  - match: [{uri: {prefix: /moved.x}}]
    redirect: {prefixRewrite: /}
  - match: [{uri: {prefix: /new}}]
    rewrite: {uri: /other/}
    route: [{destination: {host: shop.local.test, subset: two}}]
  - match: [{uri: {prefix: /}, headers: {x-below: {}}}]
    rewrite: {uri: /below}
    route: [{destination: {host: shop.local.test, subset: two}}]
  - route: [{destination: {host: shop.local.test, subset: one}}]
`

// TestElements: prefixes of what stands for Ingresses and HTTPRoutes match whole elements of
// paths, and what replaces them is joined by one slash.
func TestElements(t *testing.T) {
	for _, semantics := range []string{"ingress", "gateway"} {
		t.Run(semantics, func(t *testing.T) {
			one, two := startReporter(t, "one"), startReporter(t, "two")
			annotated := strings.Replace(rules(elementRules), "namespace: ingress}",
				"namespace: ingress, annotations: {internal.istio.io/route-semantics: "+semantics+"}}", 1)
			e := startEdge(t, true, service("shop", "HTTP", one.endpoint(""), two.endpoint(""))+"---"+policy("shop", oneAndTwo)+"---"+annotated)
			for path, want := range map[string]string{
				"/a/b": "two", "/a/b/": "two", "/a/b/c": "two", "/a/b?q": "two", "/a/bc": "one", "/a": "one", "/": "one",
				"/fold/x": "two", "/FOLD": "two", "/folded": "one", "/new": "two", "/newer": "one", "/moved": "one", "/movedyx": "one",
			} {
				if got := e.who(path); got != want {
					t.Errorf("%s: by %s, want %s", path, got, want)
				}
			}
			for path, want := range map[string]string{
				"/fold/x?q=1": "/x?q=1", "/FOLD": "/", "/fold/": "/", "/new": "/other", "/new/": "/other/", "/new/x": "/other/x", "/b": "/below/b",
			} {
				if got := e.get(path, "x-below", "1"); got.Path != want {
					t.Errorf("%s: forwarded as %s, want %s", path, got.Path, want)
				}
			}
			for path, want := range map[string]string{
				"/moved.x": "/", "/moved.x/": "/", "/moved.x/a?q=1": "/a?q=1",
			} {
				if got := e.get(path).Response.Header.Get("location"); got != "http://shop.example.com"+want {
					t.Errorf("%s: leads to %s, want %s", path, got, want)
				}
			}
			e.fine()
		})
	}
}
