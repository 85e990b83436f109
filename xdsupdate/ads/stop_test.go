// SPDX-License-Identifier: Apache-2.0

package ads_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"go.uber.org/atomic"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

// blocked is a server with a stream whose client reads nothing. gRPC takes the first
// response as a whole, and blocks with the next.
type blocked struct {
	*ads.Server
	t       *testing.T
	grpc    *grpc.Server
	stop    chan struct{}
	running sync.WaitGroup
	stream  discovery.AggregatedDiscoveryService_DeltaAggregatedResourcesClient
	sent    *sendCounter
	known   atomic.Bool   // the client is
	content atomic.String // is repeated in each resource
}

// startBlocked returns a server that is blocked with the answer to a request.
func startBlocked(t *testing.T) *blocked {
	t.Helper()
	b := startUnread(t)
	b.send("b")
	b.send("c")
	synctest.Wait() // until the stream is blocked
	return b
}

// startBlockedByPush returns a server that is blocked with a response of a push, for
// which another request waits.
func startBlockedByPush(t *testing.T) *blocked {
	t.Helper()
	b := startUnread(t)
	b.send() // from now on the client may be sent new resources
	synctest.Wait()
	b.content.Store("y")
	b.ConfigUpdate(&xdsupdate.PushRequest{Full: true, Forced: true})
	if err := b.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.send("b")
	synctest.Wait()
	if len(b.sent.sent) > 0 {
		t.Fatal("the stream is not blocked")
	}
	return b
}

// send subscribes to some resources.
func (b *blocked) send(names ...string) {
	b.t.Helper()
	err := b.stream.Send(&discovery.DeltaDiscoveryRequest{Node: node("a", "shop"), TypeUrl: customType, ResourceNamesSubscribe: names})
	if err != nil {
		b.t.Fatal(err)
	}
}

// startUnread returns a server that has sent the first response.
func startUnread(t *testing.T) *blocked {
	t.Helper()
	b := &blocked{t: t, grpc: grpc.NewServer(), stop: make(chan struct{}), sent: &sendCounter{sent: make(chan struct{}, 10)}}
	b.known.Store(true)
	b.content.Store("x")
	large := making{customType, func(ads.View, *ads.PushContext) map[string]proto.Message {
		out := make(map[string]proto.Message)
		for _, name := range []string{"a", "b", "c", "d"} {
			out[name] = wrapperspb.String(strings.Repeat(b.content.Load(), 1<<20))
		}
		return out
	}}
	b.Server = ads.New(&services{}, ads.Options{
		Providers: []ads.Provider{large},
		Observer:  b.sent,
		Proxy: func(_ context.Context, n *core.Node) (*registry.Proxy, error) {
			if !b.known.Load() {
				return nil, status.Error(codes.PermissionDenied, "unknown proxy")
			}
			return ads.ProxyOf(n), nil
		},
	})
	b.Register(b.grpc)
	listener := network(t)
	var serving sync.WaitGroup
	serving.Go(func() { _ = b.grpc.Serve(listener) })
	b.running.Go(func() { b.Run(b.stop) })
	conn := dialTo(t, listener)
	// The client never gives up: that would end its stream too.
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(func() {
		cancel()
		_ = conn.Close()
		b.grpc.Stop()
		serving.Wait()
	})
	stream, err := discovery.NewAggregatedDiscoveryServiceClient(conn).DeltaAggregatedResources(ctx)
	if err != nil {
		t.Fatal(err)
	}
	b.stream = stream
	b.send("a")
	select {
	case <-b.sent.sent:
	case <-time.After(testTimeout):
		t.Fatal("nothing was sent")
	}
	return b
}

// sendCounter notes responses.
type sendCounter struct {
	ads.NoObserver
	sent chan struct{}
}

func (c *sendCounter) Response(ads.Stream, ads.ResponseEvent) { c.sent <- struct{}{} }

// TestStopWithAClientThatDoesNotRead: Run ends the stream, though gRPC cannot send the
// end of it to the client; Stop, after a while, ends GracefulStop.
func TestStopWithAClientThatDoesNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := startBlocked(t)
		var graceful sync.WaitGroup
		graceful.Go(b.grpc.GracefulStop)
		close(b.stop)
		done := make(chan struct{})
		go func() {
			b.running.Wait()
			close(done)
		}()
		select {
		case <-done:
		case <-time.After(testTimeout):
			t.Fatal("Run does not end")
		}
		check(t, "proxies", len(b.Proxies()), 0)
		b.grpc.Stop()
		graceful.Wait()
	})
}

// TestIdentityErrorWithAClientThatDoesNotRead: the stream of a proxy that is not
// known any more ends at once.
func TestIdentityErrorWithAClientThatDoesNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := startBlocked(t)
		b.known.Store(false)
		b.ProxyUpdate("", "10.0.0.1")
		ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
		defer cancel()
		// It has stopped counting, so there is no proxy to wait for.
		if err := b.WaitApplied(ctx, nil); err != nil {
			t.Errorf("WaitApplied = %v", err)
		}
		check(t, "proxies", len(b.Proxies()), 0)
		close(b.stop)
		b.running.Wait()
	})
}

// TestStreamAfterTheEnd: a stream that opens when Run has ended is rejected like one that is ended
// by it, so that its client looks for another server.
func TestStreamAfterTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := ads.New(&services{})
		g, listener, stop := grpc.NewServer(), network(t), make(chan struct{})
		server.Register(g)
		var serving sync.WaitGroup
		serving.Go(func() { _ = g.Serve(listener) })
		close(stop)
		server.Run(stop)
		conn, begun := dialTo(t, listener), time.Now()
		stream, err := discovery.NewAggregatedDiscoveryServiceClient(conn).DeltaAggregatedResources(t.Context())
		if err == nil {
			_, err = stream.Recv()
		}
		if waited := time.Since(begun); waited > 0 {
			t.Errorf("the stream has ended after %v, want at once", waited)
		}
		if status.Code(err) != codes.Unavailable {
			t.Errorf("the stream ended with %v, want Unavailable", err)
		}
		_ = conn.Close()
		g.Stop()
		serving.Wait()
	})
}

// stopWaitsFor fails the test if Run has returned before a channel is closed, which it
// closes.
func (f *fixture) stopWaitsFor(release chan struct{}, failure string) {
	f.t.Helper()
	stopped := make(chan struct{})
	go func() {
		f.stopNow()
		close(stopped)
	}()
	synctest.Wait()
	select {
	case <-stopped:
		f.t.Error(failure)
	default:
	}
	close(release)
	<-stopped
}

// lingering is an observer that takes its time for the end of a stream, or for a
// response with a resource.
type lingering struct {
	ads.NoObserver
	closed, sent bool
	released     chan struct{}
}

func (l *lingering) StreamClosed(ads.Stream, error) {
	if l.closed {
		<-l.released
	}
}

func (l *lingering) Response(_ ads.Stream, r ads.ResponseEvent) {
	if l.sent && r.Resources > 0 {
		<-l.released
	}
}

// TestRunWaitsForStreams: when Run returns, all work of streams is done: their ends, and responses
// to requests or of pushes.
func TestRunWaitsForStreams(t *testing.T) {
	for name, tt := range map[string]struct {
		lingering
		pushed bool
	}{
		"the end":              {lingering{closed: true}, false},
		"a response":           {lingering{sent: true}, false},
		"a response of a push": {lingering{sent: true}, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := &tt.lingering
				l.released = make(chan struct{})
				f := serve(t, ads.Options{Observer: l})
				if !tt.pushed {
					f.define([]string{"a"}, service("a", "shop"))
					f.flush()
				}
				// A client that does not answer: its request would wait for the response, too.
				c := f.client(xdstest.ClientOptions{Node: node("a", "shop"), Manual: true})
				f.subscribe(c, envoy.ClusterType)
				if tt.pushed {
					r, err := c.Next(f.context())
					if err != nil {
						t.Fatal(err)
					}
					if err := c.Ack(r); err != nil {
						t.Fatal(err)
					}
					synctest.Wait()
					f.define([]string{"a"}, service("a", "shop"))
				}
				synctest.Wait()
				f.stopWaitsFor(l.released, "Run has returned before the observer has")
			})
		})
	}
}

// TestEndWithARequestThatWaits: a request that has come, and waits for a response of a
// push to be sent to a client that reads nothing, counts no more when the stream ends.
func TestEndWithARequestThatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := startBlockedByPush(t)
		b.known.Store(false)
		b.ProxyUpdate("", "10.0.0.1")
		synctest.Wait()
		check(t, "remains", b.Remains(), "connections 0, addresses 0, selections 0, waiting 0, types 0, topics 0, leaving 0")
		close(b.stop)
		b.running.Wait()
	})
}

// TestRunWaitsForAPush: when Run returns nobody calls the program's providers any more.
func TestRunWaitsForAPush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		blocked, entered := make(chan struct{}), make(chan struct{}, 10)
		var blocks atomic.Bool
		f := serve(t, ads.Options{Providers: []ads.Provider{pausing{pause: func() {
			if blocks.Load() {
				entered <- struct{}{}
				<-blocked
			}
		}}}}, service("a", "shop"))
		c := f.client(xdstest.ClientOptions{Node: node("a", "shop")})
		f.subscribe(c, envoy.ClusterType)
		f.await(c, envoy.ClusterType, cluster("a"))
		blocks.Store(true)
		f.define([]string{"a"})
		<-entered
		f.stopWaitsFor(blocked, "Run has returned while a push calls a provider")
	})
}

// TestGracefulStop follows the steps of the package comment with a client that reads:
// it keeps its stream until Run is stopped, and GracefulStop ends without Stop.
func TestGracefulStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := ads.New(&services{list: []*registry.Service{service("a", "shop")}})
		g, listener, stop := grpc.NewServer(), network(t), make(chan struct{})
		server.Register(g)
		var serving, running, graceful sync.WaitGroup
		serving.Go(func() { _ = g.Serve(listener) })
		running.Go(func() { server.Run(stop) })
		conn := dialTo(t, listener)
		defer func() { _ = conn.Close() }()
		c := xdstest.NewClient(conn)
		if err := c.Connect(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := c.Subscribe(envoy.ClusterType); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		check(t, "clusters", c.State().Names(envoy.ClusterType), []string{cluster("a")})

		graceful.Go(g.GracefulStop)
		synctest.Wait()
		if err := c.Err(); err != nil {
			t.Errorf("the stream has ended with %v before Run was stopped", err)
		}
		close(stop)
		ended := make(chan struct{})
		go func() {
			running.Wait()
			graceful.Wait()
			close(ended)
		}()
		select {
		case <-ended:
		case <-time.After(testTimeout):
			t.Error("Run or GracefulStop does not end")
			g.Stop()
		}
		serving.Wait()
		synctest.Wait()
		if err := c.Err(); status.Code(err) != codes.Unavailable {
			t.Errorf("the stream has ended with %v, want Unavailable", err)
		}
		c.Close()
	})
}
