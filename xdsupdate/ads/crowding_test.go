// SPDX-License-Identifier: Apache-2.0

package ads_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/pilotkit/pilotkit/internal/test/memnet"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

// silentStreams opens streams on a connection of their own that say nothing, and returns how they end.
func silentStreams(t *testing.T, conn *grpc.ClientConn, many int) <-chan error {
	t.Helper()
	ended := make(chan error, many)
	for range many {
		stream, err := discovery.NewAggregatedDiscoveryServiceClient(conn).DeltaAggregatedResources(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			_, err := stream.Recv()
			ended <- err
		}()
	}
	synctest.Wait()
	return ended
}

// TestSilentStreams: streams of one connection without a request keep no client of another
// connection out, whichever limit they use up, and are ended.
func TestSilentStreams(t *testing.T) {
	for name, limits := range map[string]ads.Limits{"Streams": {Streams: 50}, "Unidentified": {Unidentified: 50}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := serve(t, ads.Options{Limits: limits}, service("a", "shop"))
				f.flush()
				conn := dialTo(t, f.listener)
				defer func() { _ = conn.Close() }()
				ended := silentStreams(t, conn, 50)
				for i := range 10 {
					c := f.client(xdstest.ClientOptions{Delta: true, Node: node(fmt.Sprint("n", i), "shop")})
					f.subscribe(c, envoy.ClusterType, cluster("a"))
					f.await(c, envoy.ClusterType, cluster("a"))
				}
				ctx, cancel := context.WithTimeout(t.Context(), 11*time.Second)
				defer cancel()
				codesOf := make(map[codes.Code]int)
				for range 50 {
					select {
					case err := <-ended:
						codesOf[status.Code(err)]++
					case <-ctx.Done():
						t.Fatalf("some have not ended: %v", codesOf)
					}
				}
				if codesOf[codes.DeadlineExceeded] < 39 || codesOf[codes.ResourceExhausted] < 1 && name == "Streams" {
					t.Errorf("they ended with %v", codesOf)
				}
			})
		})
	}
}

// identifiedBy returns options that take the cluster of a node for the identity of its client.
func identifiedBy(limits ads.Limits) ads.Options {
	return ads.Options{Limits: limits, Proxy: func(_ context.Context, n *core.Node) (*registry.Proxy, error) {
		proxy := ads.ProxyOf(n)
		proxy.Identity = n.GetCluster()
		return proxy, nil
	}}
}

// identified returns a node of an identity.
func identified(identity string) *core.Node {
	n := node(identity, "shop")
	n.Cluster = identity
	return n
}

// TestStreamsOfOthers: streams of one client keep no other client out, be the client an identity
// with many connections or a connection without an identity, and the streams of clients with fewer
// streams stay.
func TestStreamsOfOthers(t *testing.T) {
	for name, limits := range map[string]ads.Limits{"with an own pool": {Streams: 10}, "without": {Streams: 10, Unidentified: -1}} {
		for client, identity := range map[string]string{"an identity": "bad", "a connection": ""} {
			t.Run(name+"/"+client, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { keepOthersOut(t, limits, identity) })
			})
		}
	}
}

func keepOthersOut(t *testing.T, limits ads.Limits, identity string) {
	t.Helper()
	f := serve(t, identifiedBy(limits), service("a", "shop"))
	f.flush()
	old := f.client(xdstest.ClientOptions{Delta: true, Node: identified("old")})
	f.subscribe(old, envoy.ClusterType, cluster("a"))
	f.await(old, envoy.ClusterType, cluster("a"))
	network := memnet.Listen()
	f.serveOn(addressed{network})
	shared := dialTo(t, network)
	defer func() { _ = shared.Close() }()
	ended := make(chan error, 20)
	for i := range 20 {
		conn := shared
		if identity != "" {
			conn = dialTo(t, network)
			defer func() { _ = conn.Close() }()
		}
		stream, err := discovery.NewAggregatedDiscoveryServiceClient(conn).DeltaAggregatedResources(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		bad := node(fmt.Sprint("bad", i), "shop")
		bad.Cluster = identity
		if err := stream.Send(&discovery.DeltaDiscoveryRequest{Node: bad, TypeUrl: envoy.ClusterType, ResourceNamesSubscribe: []string{"none"}}); err != nil {
			t.Fatal(err)
		}
		go func() {
			for {
				if _, err := stream.Recv(); err != nil {
					ended <- err
					return
				}
			}
		}()
		synctest.Wait()
	}
	check(t, "streams that were refused", len(ended), 11)
	for i := range 4 {
		c := f.client(xdstest.ClientOptions{Delta: true, Node: identified(fmt.Sprint("good", i))})
		f.subscribe(c, envoy.ClusterType, cluster("a"))
		f.await(c, envoy.ClusterType, cluster("a"))
	}
	synctest.Wait()
	check(t, "streams that have ended", len(ended), 15)
	if err := old.Err(); err != nil {
		t.Errorf("the stream of a client with one has ended with %v", err)
	}
	for range 15 {
		if err := <-ended; status.Code(err) != codes.ResourceExhausted || !strings.Contains(err.Error(), "more than 10 streams") {
			t.Errorf("a stream ended with %v", err)
		}
	}
}

// TestRapidReset: a connection that opens streams and resets them at once, again and again, as in
// CVE-2023-44487, leaves nothing behind, and keeps neither a new client out nor a connected one from
// its changes.
func TestRapidReset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := serve(t, identifiedBy(ads.Limits{Streams: 10}), service("a", "shop"))
		f.flush()
		old := f.client(xdstest.ClientOptions{Delta: true, Node: identified("old")})
		f.subscribe(old, envoy.ClusterType, "*")
		f.await(old, envoy.ClusterType, cluster("a"))
		network := memnet.Listen()
		f.serveOn(addressed{network})
		conn := dialTo(t, network)
		defer func() { _ = conn.Close() }()
		for i := range 500 {
			ctx, cancel := context.WithCancel(t.Context())
			stream, err := discovery.NewAggregatedDiscoveryServiceClient(conn).DeltaAggregatedResources(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if i%2 == 0 {
				_ = stream.Send(&discovery.DeltaDiscoveryRequest{
					Node: node(fmt.Sprint("bad", i), "shop"), TypeUrl: envoy.ClusterType, ResourceNamesSubscribe: []string{"*", fmt.Sprint("none", i)},
				})
			}
			cancel()
		}
		f.define([]string{"b"}, service("a", "shop"), service("b", "shop"))
		f.flush()
		f.await(old, envoy.ClusterType, cluster("a"), cluster("b"))
		fresh := f.client(xdstest.ClientOptions{Delta: true, Node: identified("fresh")})
		f.subscribe(fresh, envoy.ClusterType, cluster("b"))
		f.await(fresh, envoy.ClusterType, cluster("b"))
		// The network has no buffers, so that both ends of this connection may be writing: gRPC stops
		// reading while it has too much to write.
		_ = conn.Close()
		synctest.Wait()
		check(t, "proxies", len(f.Proxies()), 2)
	})
}

// TestNamesThatExist: if an identity invents many names, others may still subscribe to existing
// resources, and to other names within their shares, which are shares of identities: all clients
// are of one namespace.
func TestNamesThatExist(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		services := make([]*registry.Service, 8)
		for i := range services {
			services[i] = service(fmt.Sprint("s", i), "shop")
		}
		f := serve(t, identifiedBy(ads.Limits{AllNames: 6}), services...)
		f.flush()
		subscribed := func(identity, typeURL string, names ...string) codes.Code {
			c := f.client(xdstest.ClientOptions{Delta: true, Node: identified(identity)})
			f.subscribe(c, typeURL, names...)
			synctest.Wait()
			return status.Code(c.Err())
		}
		existing := make([]string, len(services))
		for i := range existing {
			existing[i] = cluster(fmt.Sprint("s", i))
		}
		check(t, "six invented names", subscribed("bad", envoy.ClusterType, "1", "2", "3", "4", "5", "6"), codes.OK)
		check(t, "one more", subscribed("bad", envoy.ClusterType, "7"), codes.ResourceExhausted)
		check(t, "all that exist", subscribed("good", envoy.ClusterType, existing...), codes.OK)
		check(t, "their endpoints", subscribed("good", envoy.LoadAssignmentType, existing...), codes.OK)
		check(t, "two of another identity", subscribed("other", envoy.ClusterType, "8", "9"), codes.OK)
		check(t, "four of another identity", subscribed("another", envoy.ClusterType, "8", "9", "10", "11"), codes.ResourceExhausted)
		check(t, "one that exists beside many", subscribed("more", envoy.ClusterType, append([]string{"a", "b", "c"}, existing...)...), codes.ResourceExhausted)
	})
}

// TestLargeNode: a node that is too large is rejected, also if it comes in parts, and is not
// decoded.
func TestLargeNode(t *testing.T) {
	for name, delta := range protocols() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := serve(t, ads.Options{}, service("a", "shop"))
				f.flush()
				large := node("large", "shop")
				large.Locality = &core.Locality{Region: strings.Repeat("x", 256<<10)}
				bad := f.client(xdstest.ClientOptions{Delta: delta, Node: large})
				f.subscribe(bad, envoy.ClusterType, cluster("a"))
				if _, err := bad.Next(f.context()); status.Code(err) != codes.ResourceExhausted || !strings.Contains(err.Error(), "node of ") {
					t.Errorf("the stream ended with %v", err)
				}
				large.Locality.Region = strings.Repeat("x", 255<<10)
				good := f.client(xdstest.ClientOptions{Delta: delta, Node: large})
				f.subscribe(good, envoy.ClusterType, cluster("a"))
				f.await(good, envoy.ClusterType, cluster("a"))
			})
		})
	}
}

// TestNamesOfOthers: names that clients of one namespace invent do not keep clients of another from
// their names.
func TestNamesOfOthers(t *testing.T) {
	for name, delta := range protocols() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := serve(t, ads.Options{Limits: ads.Limits{AllNames: 20}}, service("a", "shop"))
				f.flush()
				bad := f.client(xdstest.ClientOptions{Delta: delta, Node: node("bad", "evil")})
				invented := make([]string, 19)
				for i := range invented {
					invented[i] = fmt.Sprint("invented", i)
				}
				f.subscribe(bad, envoy.RouteType, invented...)
				synctest.Wait()
				good := f.client(xdstest.ClientOptions{Delta: delta, Node: node("good", "shop")})
				f.subscribe(good, envoy.ClusterType, cluster("a"))
				f.subscribe(good, envoy.LoadAssignmentType, cluster("a"))
				f.await(good, envoy.ClusterType, cluster("a"))
				f.await(good, envoy.LoadAssignmentType, cluster("a"))
				f.subscribe(bad, envoy.RouteType, "one", "more")
				for {
					if _, err := bad.Next(f.context()); err != nil {
						check(t, "code", status.Code(err), codes.ResourceExhausted)
						break
					}
				}
			})
		})
	}
}
