// SPDX-License-Identifier: Apache-2.0

package authn_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	statusv3 "github.com/envoyproxy/go-control-plane/envoy/service/status/v3"
	"go.uber.org/atomic"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/pilotkit/pilotkit/internal/test/tier"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/authn"
	"github.com/pilotkit/pilotkit/xdsupdate/csds"
)

// counter counts rejected streams.
type counter struct {
	ads.NoObserver
	refused, opened atomic.Uint64
}

func (c *counter) StreamOpened(ads.Stream) { c.opened.Inc() }

func (c *counter) StreamRefused(_ ads.Stream, err error) {
	if status.Code(err) == codes.PermissionDenied {
		c.refused.Inc()
	}
}

// TestRetries: ten thousand attempts, one every 100 ms, are all counted, and logged once a
// minute.
func TestRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const pause = 100 * time.Millisecond
		attempts := tier.Share(10_000)
		observer := new(counter)
		p := startPlane(t, planeOptions{observer: observer})
		conn := p.dial(spiffe("a"))
		start := time.Now()
		for range attempts {
			if err := attempt(conn, in("b")); status.Code(err) != codes.PermissionDenied {
				t.Fatal(err)
			}
			time.Sleep(pause)
		}
		synctest.Wait()
		check(t, "refusals", p.clients.Refusals()[authn.CauseNamespace], uint64(attempts))
		check(t, "observed", observer.refused.Load(), uint64(attempts))
		check(t, "opened", observer.opened.Load(), uint64(0))
		said := p.log.take()
		most := int(time.Since(start)/time.Minute) + 1
		if n := strings.Count(said, "\n"); n > most || n < most-1 || n != strings.Count(said, "stream refused") || !strings.Contains(said, "claims the namespace") {
			t.Errorf("%d lines in %v, want %d at most: %.2000s", n, time.Since(start), most, said)
		}
	})
}

// attempt opens a stream of a node, and returns why it ends. It costs less than p.clusters.
func attempt(conn grpc.ClientConnInterface, node *core.Node) error {
	stream, err := discovery.NewAggregatedDiscoveryServiceClient(conn).StreamAggregatedResources(context.Background())
	if err != nil {
		return err
	}
	if err := stream.Send(&discovery.DiscoveryRequest{Node: node, TypeUrl: clusterType}); err != nil {
		return err
	}
	_, err = stream.Recv()
	return err
}

// TestManyClaims: the size of the log is bounded for any claims of clients.
func TestManyClaims(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := startPlane(t, planeOptions{})
		conn := p.dial(spiffe("a"))
		const attempts = 300
		for i := range attempts {
			claim := fmt.Sprint("b", i, strings.Repeat("x", 2000))
			if got, err := p.clusters(context.Background(), conn, node("x", "NAMESPACE", claim)); status.Code(err) != codes.PermissionDenied || len(err.Error()) > 1000 {
				t.Fatalf("%v, %v", got, err)
			}
		}
		synctest.Wait()
		check(t, "refusals", p.clients.Refusals()[authn.CauseNamespace], uint64(attempts))
		if n := strings.Count(p.log.take(), "\n"); n == 0 || n > 101 {
			t.Errorf("%d lines", n)
		}
	})
}

// TestOtherServices: other services on the port know who calls.
func TestOtherServices(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := startPlane(t, planeOptions{register: func(p *plane) {
			csds.New(p.Server, csds.Options{Authorize: func(ctx context.Context) error {
				id, err := p.clients.Identity(ctx)
				if err == nil && id.Namespace != "operators" {
					err = status.Errorf(codes.PermissionDenied, "%s is no operator", id)
				}
				return err
			}}).Register(p.grpc)
		}})
		for namespace, want := range map[string]codes.Code{"operators": codes.OK, "a": codes.PermissionDenied} {
			_, err := statusv3.NewClientStatusDiscoveryServiceClient(p.dial(spiffe(namespace))).
				FetchClientStatus(p.context(), &statusv3.ClientStatusRequest{})
			check(t, namespace, status.Code(err), want)
		}
	})
}
