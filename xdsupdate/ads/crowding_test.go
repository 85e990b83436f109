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

// TestSilentStreams: streams of one connection that say nothing keep no client of another connection out, whichever limit they
// use up, and are ended.
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

// TestLargeNode: a node that is too large is refused, also where it comes in parts, and is not decoded.
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

// TestNamesOfOthers: names that clients of one namespace invent do not keep those of another from theirs.
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
