// SPDX-License-Identifier: Apache-2.0

package ads_test

import (
	"context"
	"fmt"
	"iter"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"go.uber.org/atomic"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/pilotkit/pilotkit/internal/test/memnet"
	"github.com/pilotkit/pilotkit/internal/test/testmain"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

// bomb panics while it is armed.
type bomb struct{ atomic.Bool }

func (b *bomb) tick() {
	if b.Load() {
		panic("boom")
	}
}

// panics counts the panics that an observer is notified of.
type panics struct {
	ads.NoObserver
	mu   sync.Mutex
	seen map[string]int
}

func (p *panics) Panicked(e ads.PanicEvent) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.seen == nil {
		p.seen = map[string]int{}
	}
	if !strings.Contains(e.Stack, "tick") || !strings.Contains(e.Err.Error(), "boom") {
		p.seen["strange "+e.Err.Error()]++
	}
	p.seen[e.In+" "+e.Name] += e.Times
}

func (p *panics) count(what string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.seen[what]
}

// armedProvider provides the cluster "extra", and all that is built in; each of its
// functions panics if it is the one to.
type armedProvider struct {
	*bomb
	function string
}

func (p armedProvider) tick(function string) {
	if p.function == function {
		p.bomb.tick()
	}
}

func (p armedProvider) Name() string                { return "armed" }
func (p armedProvider) Attach(xdsupdate.XDSUpdater) {}
func (p armedProvider) Group(n *core.Node, _ *registry.Proxy) any {
	if strings.Contains(n.GetId(), "bad") {
		p.tick("Group")
	}
	return nil
}

func (p armedProvider) Provide(*ads.PushContext) (ads.Provided, ads.Changes) {
	p.tick("Provide")
	return p, ads.Changes{
		Everything: func(ads.View, string) bool { p.tick("Everything"); return false },
		Names: []ads.ChangedName{{
			TypeURL: envoy.ClusterType, Name: "extra", In: func(ads.View) bool { p.tick("In"); return true },
		}},
	}
}

func (p armedProvider) Names(_ ads.View, typeURL string) (iter.Seq[string], bool) {
	p.tick("Names")
	if typeURL != envoy.ClusterType {
		return nil, false
	}
	return func(yield func(string) bool) {
		_ = yield("extra") && yield(cluster("a")) && yield(cluster("b"))
		p.tick("yield")
	}, true
}

func (p armedProvider) Covers(_ ads.View, typeURL, name string) (covered, only bool) {
	p.tick("Covers")
	only = typeURL == envoy.ClusterType
	return only && slices.Contains([]string{"extra", cluster("a"), cluster("b")}, name), only
}

func (p armedProvider) Lookup(_ ads.View, _, name string) ads.Answer {
	if name != "extra" {
		return ads.Answer{Next: true}
	}
	p.tick("Lookup")
	var share any
	if p.function == "Share" && p.Load() {
		share = []int{}
	}
	return ads.Answer{Share: share, Build: func() (proto.Message, error) {
		p.tick("Build")
		return &clusterv3.Cluster{Name: name, AltStatName: "extra"}, nil
	}}
}

// armedServices is a discovery that panics.
type armedServices struct {
	services
	*bomb
}

func (s *armedServices) Services() []*registry.Service {
	s.tick()
	return s.services.Services()
}

type brokenHandler struct {
	slog.Handler
	*bomb
}

func (h brokenHandler) Enabled(context.Context, slog.Level) bool  { h.tick(); return true }
func (h brokenHandler) Handle(context.Context, slog.Record) error { h.tick(); return nil }

// brokenObserver counts, and panics in everything else.
type brokenObserver struct {
	*panics
	*bomb
}

func (o brokenObserver) StreamOpened(ads.Stream)                     { o.tick() }
func (o brokenObserver) StreamClosed(ads.Stream, error)              { o.tick() }
func (o brokenObserver) StreamRefused(ads.Stream, error)             { o.tick() }
func (o brokenObserver) Request(ads.Stream, ads.RequestEvent)        { o.tick() }
func (o brokenObserver) Response(ads.Stream, ads.ResponseEvent)      { o.tick() }
func (o brokenObserver) Pushed(ads.PushEvent)                        { o.tick() }
func (o brokenObserver) Converged(ads.Stream, string, time.Duration) { o.tick() }

// panicking are servers with one part that panics while a bomb is armed, by the part that the panic
// is counted for.
func panicking(b *bomb, seen *panics) map[string]ads.Options {
	armed := func(function string) ads.Options {
		return ads.Options{Providers: []ads.Provider{armedProvider{bomb: b, function: function}}}
	}
	bad := func(n *core.Node) {
		if strings.Contains(n.GetId(), "bad") {
			b.tick()
		}
	}
	out := map[string]ads.Options{
		"services : Services": {},
		"proxy : Proxy": {Proxy: func(_ context.Context, n *core.Node) (*registry.Proxy, error) {
			bad(n)
			return ads.ProxyOf(n), nil
		}},
		"group : provider's": armed("Group"),
		"observer : all":     {Observer: brokenObserver{seen, b}},
		": Logger":           {Logger: slog.New(brokenHandler{bomb: b})},
	}
	for _, function := range []string{"Provide", "Everything", "In", "Names", "yield", "Covers", "Lookup", "Build"} {
		out["provider armed: "+function] = armed(function)
	}
	out[": Share"] = armed("Share") // an error and no panic
	return out
}

// TestPanics: while one part of the program panics, endpoints go on to be sent to the
// clients that are there and to new ones. When it does not any more, all have everything
// without a further change. Each panic is counted, and in the log with its stack.
func TestPanics(t *testing.T) {
	for what := range panicking(&bomb{}, &panics{}) {
		for name, delta := range protocols() {
			t.Run(what+"/"+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { testPanic(t, what, delta) })
			})
		}
	}
}

func testPanic(t *testing.T, what string, delta bool) {
	t.Helper()
	if what == ": Share" {
		testmain.ExpectPanic(t, "hash of unhashable type")
	}
	b, seen, log := &bomb{}, &panics{}, &lockedBuffer{}
	options := panicking(b, seen)[what]
	if options.Observer == nil {
		options.Observer = seen
	}
	if options.Logger == nil {
		options.Logger = slog.New(slog.NewTextHandler(log, nil))
	}
	discovery := &armedServices{bomb: &bomb{}}
	if strings.HasPrefix(what, "services") {
		discovery.bomb = b
	}
	discovery.set(service("a", "shop"))
	f := serveDiscovery(t, options, discovery)
	f.services = &discovery.services
	follow := func(name, namespace string) *xdstest.Client {
		c := f.client(xdstest.ClientOptions{Delta: delta, Node: node(name, namespace)})
		f.subscribe(c, envoy.LoadAssignmentType, cluster("a"))
		f.subscribe(c, envoy.ClusterType)
		return c
	}
	addresses := func(when, want string, clients ...*xdstest.Client) {
		t.Helper()
		for i, c := range clients {
			synctest.Wait()
			if got := addressesOf(t, c, "a"); !slices.Equal(got, []string{want}) {
				t.Errorf("%s client %d has the addresses %q, want %s", when, i, got, want)
			}
		}
	}
	f.eds("a", "shop", endpoint("10.0.0.1", 80))
	first := follow("first", "shop")
	f.waitApplied()
	addresses("at first", "10.0.0.1", first)
	before := first.State().Names(envoy.ClusterType)

	b.Store(true)
	f.define([]string{"a", "b"}, service("a", "shop"), service("b", "shop"))
	f.eds("a", "shop", endpoint("10.0.0.2", 80))
	f.flush()
	second := follow("second", "billing")
	bad := f.client(xdstest.ClientOptions{Delta: delta, Node: node("bad", "shop")})
	_ = bad.Subscribe(envoy.ClusterType) // its stream may have ended
	synctest.Wait()
	runtime.GC() // the last good state of a failing resource lasts as long as a client has it
	f.eds("a", "shop", endpoint("10.0.0.3", 80))
	f.flush()
	addresses("with a panic", "10.0.0.3", first, second)
	for _, name := range before {
		if !first.State().Has(envoy.ClusterType, name) {
			t.Errorf("the cluster %s is lost", name)
		}
	}
	counted, _, _ := strings.Cut(what, ":")
	if counted != "" && seen.count(counted) == 0 {
		t.Errorf("the panic is not counted: %v", seen.seen)
	}
	if n := strings.Count(log.text(), "tick"); counted != "" && n == 0 {
		t.Errorf("the panic is not in the log: %s", log.text())
	}

	b.Store(false)
	time.Sleep(2 * time.Minute) // that long the server waits at most before it tries again
	synctest.Wait()
	want := []string{cluster("a"), cluster("b")}
	if options.Providers != nil {
		want = append([]string{"extra"}, want...)
	}
	third := follow("third", "billing")
	synctest.Wait()
	for i, c := range []*xdstest.Client{first, second, third} {
		if got := c.State().Names(envoy.ClusterType); !slices.Equal(got, want) {
			t.Errorf("afterwards client %d has %q, want %q", i, got, want)
		}
	}
	addresses("afterwards", "10.0.0.3", first, second, third)
}

func (b *lockedBuffer) text() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// armedStream panics when it receives or sends.
type armedStream struct {
	grpc.ServerStream
	receive, send *bomb
}

func (s armedStream) RecvMsg(m any) error {
	err := s.ServerStream.RecvMsg(m)
	s.receive.tick()
	return err
}

func (s armedStream) SendMsg(m any) error {
	s.send.tick()
	return s.ServerStream.SendMsg(m)
}

// TestPanicOfAStream: a panic while a stream receives or sends ends that stream, and no other. The
// client can come back.
func TestPanicOfAStream(t *testing.T) {
	for _, sends := range []bool{false, true} {
		for name, delta := range protocols() {
			t.Run(fmt.Sprint(sends, " ", name), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					seen, none, armed := &panics{}, &bomb{}, &bomb{}
					f := serve(t, ads.Options{Observer: seen}, service("a", "shop"))
					first := f.client(xdstest.ClientOptions{Delta: delta, Node: node("first", "shop")})
					f.subscribe(first, envoy.ClusterType)
					f.await(first, envoy.ClusterType, cluster("a"))

					server, listener := grpc.NewServer(grpc.StreamInterceptor(
						func(srv any, s grpc.ServerStream, _ *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
							if sends {
								return handle(srv, armedStream{s, none, armed})
							}
							return handle(srv, armedStream{s, armed, none})
						})), memnet.Listen()
					f.Register(server)
					var serving sync.WaitGroup
					serving.Go(func() { _ = server.Serve(listener) })
					defer serving.Wait()
					defer server.Stop()
					conn := dialTo(t, listener)
					defer func() { _ = conn.Close() }()
					second := xdstest.NewClient(conn, xdstest.ClientOptions{Delta: delta, Node: node("second", "shop")})
					defer second.Close()
					for range 2 {
						armed.Store(false)
						if err := second.Connect(f.context()); err != nil {
							t.Fatal(err)
						}
						f.subscribe(second, envoy.ClusterType)
						f.subscribe(second, envoy.LoadAssignmentType, cluster("a"))
						f.waitApplied()
						armed.Store(true)
						f.eds("a", "shop", endpoint(fmt.Sprintf("10.0.0.%d", seen.count("stream ")+1), 80)) // sent by a push
						f.flush()
						_ = second.Subscribe(envoy.ListenerType, "a:80") // the stream may have ended
						synctest.Wait()
						if err := second.Err(); status.Code(err) != codes.Internal || strings.Contains(err.Error(), "boom") {
							t.Errorf("the stream ends with %v", err)
						}
					}
					if n := seen.count("stream "); n < 2 {
						t.Errorf("%d panics counted, want one for each stream that ended", n)
					}
					f.define([]string{"b"}, service("a", "shop"), service("b", "shop"))
					f.await(first, envoy.ClusterType, cluster("a"), cluster("b"))
					f.waitApplied()
				})
			})
		}
	}
}
