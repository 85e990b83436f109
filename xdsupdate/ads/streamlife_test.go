// SPDX-License-Identifier: Apache-2.0

package ads_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/pilotkit/pilotkit/internal/test/histories"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

// gauge counts streams according to the comments of Observer. Some of its calls panic after they
// have counted.
type gauge struct {
	ads.NoObserver
	t      *testing.T
	panics func() bool

	mu      sync.Mutex
	open    map[uint64]string // nodes
	known   map[uint64]bool
	byNode  map[string]int
	refused map[codes.Code]int
	nodes   map[string]int // of rejected streams
}

func newGauge(t *testing.T, panics func() bool) *gauge {
	t.Helper()
	return &gauge{
		t: t, panics: panics, open: make(map[uint64]string), known: make(map[uint64]bool), byNode: make(map[string]int),
		refused: make(map[codes.Code]int), nodes: make(map[string]int),
	}
}

func (g *gauge) StreamOpened(s ads.Stream) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.known[s.ID] || s.Node == "" || s.View.Namespace == "" {
		g.t.Errorf("opened: %+v, again: %v", s, g.known[s.ID])
	}
	g.known[s.ID], g.open[s.ID] = true, s.Node
	g.byNode[s.Node]++
	g.mayPanic()
}

func (g *gauge) StreamClosed(s ads.Stream, _ error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.open[s.ID] != s.Node {
		g.t.Errorf("closed: %+v, opened as %q", s, g.open[s.ID])
	}
	delete(g.open, s.ID)
	if g.byNode[s.Node]--; g.byNode[s.Node] < 0 {
		g.t.Errorf("%d streams of %s", g.byNode[s.Node], s.Node)
	}
	g.mayPanic()
}

func (g *gauge) StreamRefused(s ads.Stream, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if err == nil || g.known[s.ID] || s.View != (ads.View{}) {
		g.t.Errorf("refused: %+v, opened: %v: %v", s, g.known[s.ID], err)
	}
	g.refused[status.Code(err)]++
	g.nodes[s.Node]++
	g.mayPanic()
}

func (g *gauge) Request(s ads.Stream, _ ads.RequestEvent) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.known[s.ID] {
		g.t.Errorf("a request of a stream that was not opened: %+v", s)
	}
	g.mayPanic()
}

func (g *gauge) Response(s ads.Stream, _ ads.ResponseEvent) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.known[s.ID] {
		g.t.Errorf("a response of a stream that was not opened: %+v", s)
	}
}

// mayPanic panics with the lock held, which a deferred call releases.
func (g *gauge) mayPanic() {
	if g.panics() {
		panic("of an observer")
	}
}

// streams returns how many there are by the gauge, and by node.
func (g *gauge) streams() (n int, byNode map[string]int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	byNode = make(map[string]int)
	for _, node := range g.open {
		byNode[node]++
	}
	for node, n := range g.byNode {
		if n != byNode[node] {
			g.t.Errorf("%d streams of %s, want %d", n, node, byNode[node])
		}
	}
	return len(g.open), byNode
}

// TestGauge: for all ends of streams, and all panics, a gauge that is written from the comments of
// Observer is right, and 0 in the end.
func TestGauge(t *testing.T) {
	for _, seed := range histories.Seeds(t, 60) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { gaugeModel(t, seed) })
		})
	}
}

func gaugeModel(t *testing.T, seed uint64) {
	t.Helper()
	random, ofHost := rand.New(rand.NewPCG(seed, 0)), rand.New(rand.NewPCG(seed, 1))
	var mu sync.Mutex // guards the decisions of the program's functions
	in := func(n int) bool {
		mu.Lock()
		defer mu.Unlock()
		return ofHost.IntN(n) == 0
	}
	g := newGauge(t, func() bool { return in(10) })
	const limit = 6
	f := serve(t, ads.Options{
		Observer: g, Limits: ads.Limits{Streams: limit, StreamsPerNode: 3},
		Proxy: func(_ context.Context, node *core.Node) (*registry.Proxy, error) {
			time.Sleep(time.Duration(len(node.GetId())) * time.Millisecond)
			switch {
			case in(8):
				panic("of Options.Proxy")
			case in(6):
				return nil, status.Error(codes.PermissionDenied, "no")
			case in(12):
				return nil, status.Error(codes.Unavailable, "who knows")
			}
			return ads.ProxyOf(node), nil
		},
		Providers: []ads.Provider{grouping{group: func(*core.Node, *registry.Proxy) any {
			if in(15) {
				panic("of Provider.Group")
			}
			return nil
		}}},
	}, service("a", "shop"))
	synctest.Wait()
	var clients []*xdstest.Client
	stopped := false
	for range 80 {
		switch n := random.IntN(12); {
		case n < 5:
			c := xdstest.NewClient(f.dial(), xdstest.ClientOptions{Delta: in(2), Node: node(fmt.Sprint("c", random.IntN(4)), "shop")})
			if c.Connect(f.context()) == nil {
				if !in(5) { // a client that says nothing
					_ = c.Subscribe(envoy.ClusterType)
				}
				clients = append(clients, c)
			}
		case n < 8 && len(clients) > 0:
			i := random.IntN(len(clients))
			clients[i].Close()
			clients = append(clients[:i], clients[i+1:]...)
		case n == 8:
			f.ReviewProxies(nil)
		case n == 9:
			f.define([]string{"a"}, service("a", "shop", http))
		case n == 10:
			time.Sleep(time.Duration(random.IntN(40)) * time.Millisecond)
		case n == 11 && in(8) && !stopped:
			stopped = true
			f.stopNow()
		}
		if in(2) {
			synctest.Wait()
		}
		if n, _ := g.streams(); n > limit {
			t.Errorf("%d streams", n)
		}
	}
	time.Sleep(time.Second) // all identities are known
	synctest.Wait()
	_, got := g.streams()
	want := make(map[string]int)
	for _, p := range f.Proxies() {
		want[p.ID]++
	}
	check(t, "streams by node", got, want)
	for _, c := range clients {
		c.Close()
	}
	f.stopNow()
	synctest.Wait()
	n, _ := g.streams()
	check(t, "streams in the end", n, 0)
}

// TestStreamRefused: rejections before a stream is opened have the node ID, if the proxy has sent
// one.
func TestStreamRefused(t *testing.T) {
	for name, tt := range map[string]struct {
		options ads.Options
		code    codes.Code
	}{
		"the limit of streams": {ads.Options{Limits: ads.Limits{Streams: 1}}, codes.ResourceExhausted},
		"who it is": {ads.Options{Proxy: func(_ context.Context, n *core.Node) (*registry.Proxy, error) {
			if n.GetId() == node("b", "shop").GetId() {
				return nil, status.Error(codes.PermissionDenied, "no")
			}
			return &registry.Proxy{ID: n.GetId(), Namespace: "shop"}, nil
		}}, codes.PermissionDenied},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newGauge(t, func() bool { return false })
				tt.options.Observer = g
				f := serve(t, tt.options)
				f.subscribe(f.client(xdstest.ClientOptions{Node: node("a", "shop")}), envoy.ClusterType)
				synctest.Wait() // until the server knows the first
				second := f.client(xdstest.ClientOptions{Node: node("b", "shop")})
				_ = second.Subscribe(envoy.ClusterType)
				synctest.Wait()
				check(t, "refused", g.refused, map[codes.Code]int{tt.code: 1})
				check(t, "nodes", g.nodes, map[string]int{node("b", "shop").GetId(): 1})
				n, _ := g.streams()
				check(t, "streams", n, 1)
			})
		})
	}
}
