// SPDX-License-Identifier: Apache-2.0

package realservers

import (
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/pilotkit/pilotkit/internal/test/authority"
)

// workload returns the documents of a service with one server, whose workload has some further labels.
func workload(address, labels string) string {
	_, port, _ := net.SplitHostPort(address)
	return fmt.Sprintf(`
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: quotes, namespace: shop}
spec:
  hosts: [quotes.shop.svc.cluster.local]
  location: MESH_INTERNAL
  ports: [{number: 9000, name: grpc, protocol: GRPC, targetPort: %s}]
  resolution: STATIC
  workloadSelector: {labels: {app: quotes}}
---
apiVersion: networking.istio.io/v1
kind: WorkloadEntry
metadata: {name: quotes, namespace: shop}
spec: {address: 127.0.0.1, labels: {app: quotes%s}, serviceAccount: quotes}
`, port, labels)
}

// mode returns a PeerAuthentication of the mesh.
func mode(m string) string {
	return `
---
apiVersion: security.istio.io/v1
kind: PeerAuthentication
metadata: {name: mesh, namespace: istio-system}
spec: {mtls: {mode: ` + m + `}}
`
}

// policy returns an AuthorizationPolicy of the server's namespace.
func policy(name, spec string) string {
	return `
---
apiVersion: security.istio.io/v1
kind: AuthorizationPolicy
metadata: {name: ` + name + `, namespace: shop}
spec: ` + spec + "\n"
}

// The identities of clients.
const (
	cart = "spiffe://cluster.local/ns/web/sa/cart"
	evil = "spiffe://cluster.local/ns/evil/sa/evil"
)

// stage is a server with its control plane and its clients.
type stage struct {
	*plane
	server            string
	issuer            *authority.Authority
	cart, evil, plain *client
}

// start starts a server with some documents in addition to its workload.
func start(t *testing.T, k kind, labels, text string) *stage {
	t.Helper()
	issuer := authority.New(t)
	s := &stage{server: freeAddresses(t, "127.0.0.1", 1)[0], issuer: issuer}
	s.plane = startPlane(t, workload(s.server, labels)+text)
	content, _ := bootstrap(t, s.Address, issuer)
	k.start(t, content, s.server)
	s.cart, s.evil, s.plain = of(t, s.server, issuer, cart), of(t, s.server, issuer, evil), plain(t, s.server)
	return s
}

// TestModes: what connections a server takes by its PeerAuthentications.
func TestModes(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, k kind) {
		t.Helper()
		for name, tc := range map[string]struct {
			labels, documents string
			cart, plain       codes.Code
		}{
			"STRICT":               {"", mode("STRICT"), allowed, closed},
			"DISABLE":              {"", mode("DISABLE"), closed, allowed},
			"PERMISSIVE":           {"", mode("PERMISSIVE"), closed, allowed},
			"PERMISSIVE, labelled": {", security.istio.io/tlsMode: istio", mode("PERMISSIVE"), allowed, closed},
		} {
			t.Run(name, func(t *testing.T) {
				s := start(t, k, tc.labels, tc.documents)
				if tc.cart == allowed {
					s.cart.becomes(tc.cart, "Get")
				}
				s.plain.becomes(tc.plain, "Get")
				s.cart.becomes(tc.cart, "Get")
				s.Accepted()
			})
		}
	})
}

// TestPolicies: who may call what, by policies that come, change and go.
func TestPolicies(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, k kind) {
		t.Helper()
		allow := policy("a", `{rules: [{from: [{source: {principals: ["cluster.local/ns/web/sa/cart"]}}]}]}`)
		deny := policy("d", `{action: DENY, rules: [{to: [{operation: {paths: ["/{*}/Put"]}}]}]}`)
		s := start(t, k, "", mode("STRICT")+allow) // before the server
		s.cart.becomes(allowed, "Get")
		s.evil.becomes(denied, "Get")
		s.plain.becomes(closed, "Get")

		s.apply(deny)
		s.cart.becomes(denied, "Put")
		s.cart.becomes(allowed, "Get")
		s.apply(policy("d", `{action: DENY, rules: [{when: [{key: "request.headers[X-User]", values: ["mallory"]}]}]}`))
		s.cart.becomes(allowed, "Put")
		s.cart.becomes(denied, "Get", "x-user", "mallory")
		s.cart.becomes(allowed, "Get", "x-user", "alice")
		s.apply(policy("d", `{action: DENY, rules: [{to: [{operation: {hosts: ["QUOTES.SHOP*"], methods: ["POST"], notPaths: ["*/Get"]}}]}]}`))
		s.cart.becomes(denied, "Put")
		s.cart.becomes(allowed, "Get")
		s.apply(policy("d", `{action: DENY, rules: [{from: [{source: {ipBlocks: ["127.0.0.0/8"]}}]}]}`))
		s.cart.becomes(denied, "Get")
		s.apply(policy("d", `{action: DENY, rules: [{to: [{operation: {ports: ["1"]}}]}]}`))
		if k.unconnected { // it denies more than the policy says, rather than less
			s.cart.becomes(denied, "Get")
		} else {
			s.cart.becomes(allowed, "Get")
		}
		s.apply(policy("d", `{action: CUSTOM, provider: {name: unknown}, rules: [{to: [{operation: {paths: ["*/Put"]}}]}]}`)) // S4
		s.cart.becomes(allowed, "Get")
		s.cart.becomes(denied, "Put")
		s.remove(deny)
		s.cart.becomes(allowed, "Put")
		s.apply(policy("a", `{}`)) // S1
		s.cart.becomes(denied, "Get")
		s.remove(allow)
		s.evil.becomes(allowed, "Get")
		s.Applied()
		s.Accepted()
	})
}

// TestWorkload: the labels of a server's workload change, and the server loses its workload and
// gets it back (S92, S93).
func TestWorkload(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, k kind) {
		t.Helper()
		s := start(t, k, ", version: v1", mode("STRICT")+policy("a", `{selector: {matchLabels: {version: v2}}, action: DENY, rules: [{}]}`))
		s.cart.becomes(allowed, "Get")
		s.apply(workload(s.server, ", version: v2"))
		s.cart.becomes(denied, "Get")
		s.apply(strings.ReplaceAll(workload(s.server, ", version: v1"), "labels: {app: quotes, version", "labels: {app: other, version"))
		s.cart.becomes(closed, "Get")
		s.apply(workload(s.server, ", version: v1"))
		s.cart.becomes(allowed, "Get")
		s.Accepted()
	})
}

// TestUnderLoad: while policies change, no call that is allowed before and after fails, and none
// that is denied before and after succeeds.
func TestUnderLoad(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, k kind) {
		t.Helper()
		s := start(t, k, "", mode("STRICT")+policy("a", `{rules: [{from: [{source: {namespaces: [web]}}]}]}`))
		s.cart.becomes(allowed, "Get")
		s.evil.becomes(denied, "Get")
		var calls atomic.Int64
		stop := make(chan struct{})
		var running sync.WaitGroup
		load := func(c *client, want codes.Code) {
			for {
				select {
				case <-stop:
					return
				default:
				}
				calls.Add(1)
				if got := c.call("Get"); got != want && (!k.reconnects || got != closed) {
					t.Errorf("%v, want %v", got, want)
					return
				}
			}
		}
		// The C core and grpc-js end connections for a new listener, and pending calls on them may
		// fail. No other call may.
		s.cart.waits, s.evil.waits = k.reconnects, k.reconnects
		running.Go(func() { load(s.cart, allowed) })
		running.Go(func() { load(s.evil, denied) })
		for i := range 30 {
			s.apply(policy("a", fmt.Sprintf(`{rules: [{from: [{source: {namespaces: [web, n%d]}}]}]}`, i)) +
				policy("d", fmt.Sprintf(`{action: DENY, rules: [{to: [{operation: {paths: ["/quotes.Quotes/Put%d"]}}]}]}`, i)))
			s.Applied()
			if i%3 == 0 {
				s.remove(policy("d", "{}"))
				s.Applied()
			}
		}
		close(stop)
		running.Wait()
		s.Accepted()
		t.Logf("%d calls", calls.Load())
	})
}
