// SPDX-License-Identifier: Apache-2.0

package ads_test

import (
	"context"
	"fmt"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"go.uber.org/atomic"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/pilotkit/pilotkit/internal/test/memnet"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

// requests counts requests.
type requests struct {
	ads.NoObserver
	handled atomic.Int64
}

func (r *requests) Request(ads.Stream, ads.RequestEvent) { r.handled.Inc() }

// TestFloodsWait: of excessive requests little is done at any time, and another client gets
// responses, and a change, without any delay.
func TestFloodsWait(t *testing.T) {
	const clients = 5
	for what, tt := range map[string]struct {
		names int // in each request
		most  int // of requests of all clients, in 100 ms beyond their allowances
	}{
		"requests": {1, 100_000/51 + clients*2_000/51 + clients},
		"names":    {5_000, 100_000/5_050 + 2*clients},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				count := &requests{}
				f := serve(t, ads.Options{Observer: count}, service("a", "shop"))
				f.flush()
				good := f.client(xdstest.ClientOptions{Delta: true, Node: node("good", "shop")})
				f.subscribe(good, envoy.LoadAssignmentType, cluster("a"))
				f.await(good, envoy.LoadAssignmentType, cluster("a"))
				for range clients {
					f.flood(manyNames(tt.names)...)
				}
				for i := range 3 {
					time.Sleep(100 * time.Millisecond)
					before, begun := count.handled.Load(), time.Now()
					address := fmt.Sprintf("10.0.0.%d", i)
					f.eds("a", "shop", endpoint(address, 80))
					f.flush()
					f.subscribe(good, envoy.RouteType, address)
					synctest.Wait()
					check(t, "addresses", addressesOf(t, good, "a"), []string{address})
					check(t, "time that the other took", time.Since(begun), time.Duration(0))
					time.Sleep(100 * time.Millisecond)
					if n := int(count.handled.Load() - before); n == 0 || n > tt.most {
						t.Errorf("%d requests in 100 ms, want at most %d, and some", n, tt.most)
					}
				}
			})
		})
	}
}

// flood has a client subscribe to names and give them up, over and over.
func (f *fixture) flood(names ...string) {
	f.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	stream, err := discovery.NewAggregatedDiscoveryServiceClient(f.dial()).DeltaAggregatedResources(ctx)
	if err != nil {
		f.t.Fatal(err)
	}
	var running sync.WaitGroup
	f.t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	running.Go(func() {
		for err := error(nil); err == nil; {
			_, err = stream.Recv()
		}
	})
	running.Go(func() {
		on := &discovery.DeltaDiscoveryRequest{Node: node("bad", "shop"), TypeUrl: envoy.RouteType, ResourceNamesSubscribe: names}
		off := &discovery.DeltaDiscoveryRequest{TypeUrl: envoy.RouteType, ResourceNamesUnsubscribe: names}
		for stream.Send(on) == nil && stream.Send(off) == nil {
		}
	})
}

func manyNames(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("outbound|80||%06d", i)
	}
	return out
}

// TestDefaultLimits: the limits have defaults; a negative one means no limit.
func TestDefaultLimits(t *testing.T) {
	for what, tt := range map[string]struct {
		limits ads.Limits
		names  int
		want   codes.Code
	}{
		"default":                {ads.Limits{}, 100_000, codes.OK},
		"more than the default":  {ads.Limits{}, 100_001, codes.ResourceExhausted},
		"no limit":               {ads.Limits{Names: -1, Streams: -1, StreamsPerNode: -1, RequestBytes: -1}, 100_001, codes.OK},
		"more bytes than may be": {ads.Limits{RequestBytes: 1 << 20}, 100_000, codes.ResourceExhausted},
	} {
		for name, delta := range protocols() {
			t.Run(what+"/"+name, func(t *testing.T) {
				if testing.Short() && tt.want == codes.OK {
					t.Skip("a hundred thousand names take seconds")
				}
				synctest.Test(t, func(t *testing.T) {
					f := serve(t, ads.Options{Limits: tt.limits}, service("a", "shop"))
					f.flush()
					c := f.client(xdstest.ClientOptions{Delta: delta, Node: node("a", "shop")})
					f.subscribe(c, envoy.RouteType, manyNames(tt.names)...)
					synctest.Wait()
					time.Sleep(10 * time.Second)
					check(t, "code", status.Code(c.Err()), tt.want)
				})
			})
		}
	}
}

// TestAnswersAreFree: a client that answers thousands of responses in no time is not one
// that asks for too much.
func TestAnswersAreFree(t *testing.T) {
	for name, delta := range protocols() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := serve(t, ads.Options{}, service("a", "shop"))
				f.flush()
				c := f.client(xdstest.ClientOptions{Delta: delta, Node: node("a", "shop"), NoHistory: true})
				f.subscribe(c, envoy.LoadAssignmentType, cluster("a"))
				begun := time.Now()
				for i := range 2_500 {
					f.eds("a", "shop", endpoint(fmt.Sprintf("10.0.%d.%d", i/250, i%250), 80))
					f.flush()
					synctest.Wait()
				}
				check(t, "addresses", addressesOf(t, c, "a"), []string{"10.0.9.249"})
				check(t, "time that it took", time.Since(begun), time.Duration(0))
			})
		})
	}
}

// addressed accepts connections that have an address of their own each, like those of a network.
type addressed struct{ *memnet.Listener }

func (l addressed) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	return addressedConn{conn, &net.TCPAddr{}}, err
}

type addressedConn struct {
	net.Conn
	addr net.Addr
}

func (c addressedConn) RemoteAddr() net.Addr { return c.addr }

// TestStreamsAreWork: opening streams on one connection, one after the other, is work, too, and
// little of it is done at once; other connections do not notice.
func TestStreamsAreWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := serve(t, ads.Options{}, service("a", "shop"))
		f.flush()
		memory := memnet.Listen()
		f.serveOn(addressed{memory})
		open := func(streams int) time.Duration {
			conn := dialTo(t, memory)
			defer func() { _ = conn.Close() }()
			begun := time.Now()
			for range streams {
				ctx, cancel := context.WithCancel(context.Background())
				stream, err := discovery.NewAggregatedDiscoveryServiceClient(conn).DeltaAggregatedResources(ctx)
				if err != nil {
					t.Fatal(err)
				}
				if err := stream.Send(&discovery.DeltaDiscoveryRequest{Node: node("a", "shop"), TypeUrl: envoy.ClusterType}); err != nil {
					t.Fatal(err)
				}
				if _, err := stream.Recv(); err != nil {
					t.Fatal(err)
				}
				cancel()
				synctest.Wait()
			}
			return time.Since(begun)
		}
		check(t, "time that 90 streams take", open(90), time.Duration(0))
		if took := open(200); took < 80*time.Millisecond || took > time.Second {
			t.Errorf("200 streams of one connection take %v, want a millisecond for each beyond the first 90 or so", took)
		}
		check(t, "time that 90 streams of another take", open(90), time.Duration(0))
	})
}
