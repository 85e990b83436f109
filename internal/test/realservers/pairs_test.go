// SPDX-License-Identifier: Apache-2.0

package realservers

import (
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/pilotkit/pilotkit/internal/test/authority"
	"github.com/pilotkit/pilotkit/internal/test/grpccall"
)

// pairs are clients of all kinds, each as two identities, and servers of all kinds.
type pairs struct {
	*plane

	clients []pairClient
	ports   []pairPort
}

type pairClient struct {
	*grpccall.Caller
	name string // of the kind and the identity
	evil bool
	// keeps: it keeps open connections when it is to use another transport.
	keeps bool
	// internal: calls on a connection that a server ends fail as internal, not as unavailable.
	internal bool
}

// pairPort is a port of a server, which has a service of its own.
type pairPort struct {
	service string
	// mode is that of the port; mutual: it takes mutual TLS, else plain text.
	mode   string
	mutual bool
	server kind
}

func (d pairPort) target() string { return "xds:///" + d.service + ".shop.svc.cluster.local:9000" }

// pairServers are the servers of each kind, by the labels of their workloads, and their ports.
var pairServers = []struct {
	name, labels string
	ports        []pairPort
}{
	{"unlabelled", "", []pairPort{{mode: "STRICT", mutual: true}, {mode: "PERMISSIVE"}, {mode: "DISABLE"}}},
	{"labelled", ", security.istio.io/tlsMode: istio", []pairPort{{mode: "PERMISSIVE", mutual: true}}},
}

// startPairs starts the installed clients and servers.
func startPairs(t *testing.T) *pairs {
	t.Helper()
	p, issuer := &pairs{}, authority.New(t)
	var text strings.Builder
	var start, call []func()
	var all []string
	for _, k := range kinds() {
		if reason := k.missing(); reason != "" {
			t.Log(k.name, reason)
			continue
		}
		for _, s := range pairServers {
			at := node{fmt.Sprintf("127.0.0.%d", 10+len(start)), "quotes", "shop"}
			name, addresses := strings.ToLower(s.name+"-"+k.name), freeAddresses(t, at.ip, len(s.ports))
			modes := make([]string, len(s.ports))
			for i, d := range s.ports {
				d.server, d.service = k, strings.ToLower(d.mode)+"-"+name
				p.ports = append(p.ports, d)
				_, port, _ := net.SplitHostPort(addresses[i])
				modes[i] = fmt.Sprintf("%s: {mode: %s}", port, d.mode)
				text.WriteString(d.entry(name, port) + d.transport(d.mutual))
			}
			text.WriteString(pairWorkload(name, at.ip, s.labels, strings.Join(modes, ", ")))
			start = append(start, func() {
				content, _ := at.bootstrap(t, p.Address, issuer)
				k.start(t, content, addresses...)
			})
			all = append(all, addresses...)
		}
		for _, n := range []node{{"127.0.0.1", "cart", "web"}, {"127.0.0.1", "evil", "evil"}} {
			call = append(call, func() {
				content, _ := n.bootstrap(t, p.Address, issuer)
				c := k.client().Start(t, content)
				p.clients = append(p.clients, pairClient{c, k.name + " as " + n.account, n.account == "evil", k.name == "grpc-go", k.name == "grpc-js"})
			})
		}
	}
	p.plane = startPlane(t, text.String())
	for _, f := range start {
		f()
	}
	for _, address := range all { // C-core backs off while the server does not listen yet
		awaitListening(t, address)
	}
	for _, f := range call {
		f()
	}
	return p
}

// awaitListening returns when somebody listens at an address.
func awaitListening(t *testing.T, address string) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(2 * patience); ; <-tick.C {
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", address)
		if err == nil {
			_ = conn.Close()
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

// pairWorkload returns a workload, and the modes of its ports.
func pairWorkload(name, ip, labels, modes string) string {
	return fmt.Sprintf(`
---
apiVersion: networking.istio.io/v1
kind: WorkloadEntry
metadata: {name: %[1]s, namespace: shop}
spec: {address: %[2]s, labels: {app: %[1]s%[3]s}, serviceAccount: quotes}
---
apiVersion: security.istio.io/v1
kind: PeerAuthentication
metadata: {name: %[1]s, namespace: shop}
spec: {selector: {matchLabels: {app: %[1]s}}, portLevelMtls: {%[4]s}}
`, name, ip, labels, modes)
}

// entry returns the service of a port of a workload.
func (d pairPort) entry(workload, port string) string {
	return fmt.Sprintf(`
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: %[1]s, namespace: shop}
spec:
  hosts: [%[1]s.shop.svc.cluster.local]
  location: MESH_INTERNAL
  ports: [{number: 9000, name: grpc, protocol: GRPC, targetPort: %[2]s}]
  resolution: STATIC
  workloadSelector: {labels: {app: %[3]s}}
`, d.service, port, workload)
}

// transport returns the DestinationRule for calling the service.
func (d pairPort) transport(mutual bool) string {
	mode := "DISABLE"
	if mutual {
		mode = "ISTIO_MUTUAL"
	}
	return fmt.Sprintf(`
---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: %[1]s, namespace: shop}
spec: {host: %[1]s.shop.svc.cluster.local, trafficPolicy: {tls: {mode: %[2]s}}}
`, d.service, mode)
}

// transports returns the transports of all ports, or for each the one that it does not accept.
func (p *pairs) transports(right bool) string {
	var text strings.Builder
	for _, d := range p.ports {
		text.WriteString(d.transport(d.mutual == right))
	}
	return text.String()
}

// outcomes are the expected outcomes of a call.
type outcomes struct {
	method, headers string // headers: "name=value"
	// cart and evil are the outcomes with those identities, by mutual TLS; plain is the outcome in
	// plain text, without an identity.
	cart, evil, plain codes.Code
	// open is by connections that are open, and their clients keep, if that is not the same.
	open *outcomes
}

func (o outcomes) of(c pairClient, d pairPort) codes.Code {
	switch {
	case c.keeps && o.open != nil:
		return o.open.of(c, d)
	case !d.mutual:
		return o.plain
	case c.evil:
		return o.evil
	default:
		return o.cart
	}
}

func (o outcomes) call(d pairPort) grpccall.Call {
	call := grpccall.Call{Target: d.target(), Path: "/quotes.Quotes/" + o.method, Timeout: patience.Milliseconds()}
	if name, value, ok := strings.Cut(o.headers, "="); ok {
		call.Headers = map[string]string{name: value}
	}
	return call
}

// become returns when all calls of all pairs have their outcomes, at the same time.
func (p *pairs) become(about string, want ...outcomes) {
	p.TB.Helper()
	p.Applied()
	for deadline := time.Now().Add(patience); ; {
		wrong := p.differences(want)
		if len(wrong) == 0 {
			return
		}
		if time.Now().After(deadline) {
			p.TB.Fatalf("%s: %s", about, strings.Join(wrong, "\n"))
		}
	}
}

// differences makes all calls once with all clients.
func (p *pairs) differences(want []outcomes) (out []string) {
	var mu sync.Mutex
	var running sync.WaitGroup
	for _, c := range p.clients {
		running.Go(func() {
			wrong := c.differences(p.ports, want)
			mu.Lock()
			defer mu.Unlock()
			out = append(out, wrong...)
		})
	}
	running.Wait()
	return out
}

func (c pairClient) differences(ports []pairPort, want []outcomes) (out []string) {
	var calls []grpccall.Call
	for _, d := range ports {
		for _, o := range want {
			calls = append(calls, o.call(d))
		}
	}
	answers, err := c.Try(calls...)
	if err != nil {
		return []string{c.name + ": " + err.Error()}
	}
	for i, got := range answers {
		d, o := ports[i/len(want)], want[i%len(want)]
		if code := o.of(c, d); got.Code != code {
			out = append(out, fmt.Sprintf("%s calls %s of %s (%s): %v (%s), want %v", c.name, o.method, d.service, o.headers, got.Code, got.Error, code))
		}
	}
	return out
}

// TestPairs: clients of all kinds call servers of all kinds, with the certificates of their
// bootstraps and in plain text, as policies say that come, change and go.
func TestPairs(t *testing.T) {
	t.Parallel()
	p := startPairs(t)
	served := outcomes{"Get", "", allowed, allowed, allowed, nil}
	cartAlone := outcomes{"Get", "", allowed, denied, denied, nil}
	p.become("no policy", served)
	for _, tc := range []struct {
		name, apply, remove string
		want                []outcomes
	}{
		{"ALLOW of a principal", policy("a", `{rules: [{from: [{source: {principals: ["cluster.local/ns/web/sa/cart"]}}]}]}`), "", []outcomes{
			cartAlone, {"Put", "", allowed, denied, denied, nil},
		}},
		{"DENY of a method beside it", policy("d", `{action: DENY, rules: [{to: [{operation: {paths: ["/quotes.Quotes/Put"]}}]}]}`), "", []outcomes{
			cartAlone, {"Put", "", denied, denied, denied, nil},
		}},
		{"ALLOW of a header", policy("a", `{rules: [{when: [{key: "request.headers[x-role]", values: [admin]}]}]}`), "", []outcomes{
			{"Get", "x-role=admin", allowed, allowed, allowed, nil},
			{"Get", "x-role=guest", denied, denied, denied, nil},
			{"Put", "x-role=admin", denied, denied, denied, nil},
		}},
		{"DENY of a namespace", policy("d", `{action: DENY, rules: [{from: [{source: {namespaces: [evil]}}]}]}`), policy("a", "{}"), []outcomes{
			{"Get", "", allowed, denied, allowed, nil}, {"Put", "", allowed, denied, allowed, nil},
		}},
		{"DENY of all but a principal", policy("d", `{action: DENY, rules: [{from: [{source: {notPrincipals: ["*/ns/web/sa/cart"]}}]}]}`), "", []outcomes{cartAlone}},
		{"the transport that servers do not take", p.transports(false), "", []outcomes{{"Get", "", closed, closed, closed, &cartAlone}}},
		{"the transport that they take", p.transports(true), "", []outcomes{cartAlone}},
		{"no policy again", "", policy("d", "{}"), []outcomes{served}},
	} {
		p.Change(tc.apply, tc.remove)
		p.become(tc.name, tc.want...)
	}
	p.underLoad()
	p.Accepted()
}
