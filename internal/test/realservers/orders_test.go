// SPDX-License-Identifier: Apache-2.0

package realservers

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/pilotkit/pilotkit/internal/test/authority"
)

// The events of an order: a batch of the store each, or several in one; the start of a server; and
// the files of its certificate.
const (
	theWorkload    = "workload"
	theMode        = "mode"
	thePolicies    = "policies"
	theServer      = "server"
	theCertificate = "certificate"
)

// order is a sequence of events. Everything else is there before.
type order [][]string

func (o order) String() string {
	var steps []string
	for _, s := range o {
		steps = append(steps, strings.Join(s, "+"))
	}
	return strings.Join(steps, ",")
}

// of returns when something comes; -1: before.
func (o order) of(what string) int {
	return slices.IndexFunc(o, func(step []string) bool { return slices.Contains(step, what) })
}

// precedes reports whether an event comes before the server serves, or together with the event that
// makes it serve.
func (o order) precedes(what string) bool {
	return o.of(what) <= max(o.of(theWorkload), o.of(theServer), o.of(theCertificate))
}

// allOrders are the orders of one batch, to a running server, and to one that starts after it; and
// of separate events.
func allOrders() []order {
	out := fewOrders()
	for _, batch := range permutations(theWorkload, theMode, thePolicies) {
		out = append(out, order{{theServer}, batch})
	}
	out = append(out, order{{theWorkload, theMode, thePolicies}, {theServer}})
	for _, steps := range permutations(theWorkload, thePolicies, theServer) {
		out = append(out, order{{theMode}, steps[:1], steps[1:2], steps[2:]})
	}
	for _, steps := range permutations(theWorkload, theMode, theServer) {
		out = append(out, order{{thePolicies}, steps[:1], steps[1:2], steps[2:]})
	}
	return out
}

// fewOrders are for servers that take long to start.
func fewOrders() []order {
	return []order{
		{{theServer}, {theWorkload, theMode, thePolicies}, {theCertificate}},
		{{theWorkload}, {theServer}, {theMode}, {thePolicies}},
	}
}

func permutations(of ...string) (out [][]string) {
	if len(of) == 0 {
		return [][]string{nil}
	}
	for i, first := range of {
		for _, rest := range permutations(slices.Delete(slices.Clone(of), i, i+1)...) {
			out = append(out, append([]string{first}, rest...))
		}
	}
	return out
}

// TestOrders: for any order of a workload, its policies, its server and the certificate, no call is
// served that is denied by a policy that was there before, or came in one batch with the denied
// service.
func TestOrders(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, k kind) {
		t.Helper()
		orders := allOrders()
		if k.client().External {
			orders = fewOrders()
		}
		for _, o := range orders {
			t.Run(o.String(), func(t *testing.T) { inOrder(t, k, o) })
		}
	})
}

// inOrder tries an order, while those call whose calls are denied in the end.
func inOrder(t *testing.T, k kind, o order) {
	t.Helper()
	issuer, server := authority.New(t), freeAddresses(t, "127.0.0.1", 1)[0]
	p := startPlane(t, "")
	content, files := bootstrap(t, p.Address, issuer)
	texts := map[string]string{
		theWorkload: workload(server, ""), theMode: mode("STRICT"),
		thePolicies: policy("d", `{action: DENY, rules: [{from: [{source: {namespaces: [evil]}}]}]}`) +
			policy("a", `{rules: [{to: [{operation: {paths: ["/quotes.Quotes/Get"]}}]}]}`),
	}
	if o.of(theCertificate) >= 0 {
		move(t, files, files+".away")
	}
	var denials []*denial
	for range 4 { // a client that connects at the right moment would see the open state for a moment
		denials = append(denials,
			&denial{client: of(t, server, issuer, evil), method: "Get", want: denied, never: o.precedes(thePolicies)},
			&denial{client: of(t, server, issuer, cart), method: "Put", want: denied, never: o.precedes(thePolicies)},
			&denial{client: plain(t, server), method: "Get", want: closed, never: o.precedes(theMode)})
	}
	stop := call(denials)
	defer stop()
	for _, step := range o {
		switch text := ""; step[0] {
		case theServer:
			k.start(t, content, server)
		case theCertificate:
			move(t, files+".away", files)
		default:
			for _, what := range step {
				text += texts[what]
			}
			p.apply(text)
			p.Applied()
		}
	}
	of(t, server, issuer, cart).becomes(allowed, "Get")
	for _, d := range denials {
		d.client.becomes(d.want, d.method)
	}
	stop()
	for _, d := range denials {
		if n := d.served.Load(); n > 0 && d.never {
			t.Errorf("%d calls of %s were served that are to be %v", n, d.method, d.want)
		}
	}
	p.Accepted()
}

// denial is a call that is denied in the end, or from the beginning.
type denial struct {
	client *client
	method string
	want   codes.Code
	never  bool
	served atomic.Int64
}

// call makes calls again and again, until it is told to stop.
func call(denials []*denial) (stop func()) {
	done := make(chan struct{})
	var running sync.WaitGroup
	for _, d := range denials {
		running.Go(func() {
			tick := time.NewTicker(time.Millisecond)
			defer tick.Stop()
			for {
				select {
				case <-done:
					return
				case <-tick.C:
				}
				if d.client.call(d.method) == allowed {
					d.served.Add(1)
				}
			}
		})
	}
	return sync.OnceFunc(func() {
		close(done)
		running.Wait()
	})
}

func move(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Rename(from, to); err != nil {
		t.Fatal(fmt.Errorf("the files of a certificate: %w", err))
	}
}
