// SPDX-License-Identifier: Apache-2.0

package gatewayapi

import (
	"fmt"
	"strings"
	"testing"
)

// TestListenerSetMoves: a ListenerSet moves from one Gateway to another, in either order of their
// names, and a Gateway with the ListenerSet's name is created and deleted.
func TestListenerSetMoves(t *testing.T) {
	t.Parallel()
	gateway := func(name string, port int) string {
		return fmt.Sprintf(`
kind: Gateway
metadata: {name: %s, namespace: infra}
spec:
  gatewayClassName: istio
  allowedListeners: {namespaces: {from: All}}
  listeners: [{name: web, port: %d, protocol: HTTP, allowedRoutes: {namespaces: {from: All}}}]
---`, name, port)
	}
	set := func(gateway string) string {
		return fmt.Sprintf(`
kind: ListenerSet
metadata: {name: m, namespace: infra}
spec: {parentRef: {name: %s}, listeners: [{name: web, port: 8080, protocol: HTTP, allowedRoutes: {namespaces: {from: All}}}]}
---
`, gateway)
	}
	route := strings.Replace(httpRoute("r", `[{`+toCart+`}]`), "{name: edge,", "{kind: ListenerSet, name: m,", 1)
	sys := newSystem()
	for i, text := range []string{
		world + gateway("a", 81) + gateway("z", 82) + set("a") + route, set("z"), set("a"), gateway("m", 83), set("z"), "", set("a"),
		gateway("m", 84) + set("m"), set("nobody"), set("z"),
	} {
		if text == "" {
			if err := sys.remove(objectRef{string(KindGateway), "infra", "m"}); err != nil {
				t.Fatal(err)
			}
		}
		if err := sys.applyAll(text); err != nil {
			t.Fatal(err)
		}
		if diff := diffSnapshots(sys.fresh(), sys.converter.Snapshot()); diff != "" {
			t.Fatalf("step %d (-fresh +incremental):\n%s", i, diff)
		}
		want := "[infra/ListenerSet/m/web.infra] [*]"
		if strings.HasPrefix(text, set("nobody")) {
			want = ""
		}
		if got := sys.answer("hosts"); got != want {
			t.Errorf("step %d: hosts %s, want %s", i, got, want)
		}
	}
	sys.removeAll(t)
}
