// SPDX-License-Identifier: Apache-2.0

package ads_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"go.uber.org/atomic"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

// TestLimits: a stream that exceeds a limit is ended with a text that names it, and
// others are not.
func TestLimits(t *testing.T) {
	for what, limits := range map[string]ads.Limits{
		"more than 1 streams":                      {Streams: 1},
		"more than 1 streams of node":              {StreamsPerNode: 1},
		"more than 2 resources subscribed by name": {Names: 2},
		"bytes, more than 400":                     {RequestBytes: 400},
		"more than 0.001 requests a second":        {RequestsPerSecond: 0.001, RequestBurst: 6},
	} {
		for name, delta := range protocols() {
			t.Run(what+"/"+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					f := serve(t, ads.Options{Limits: limits}, service("a", "shop"), service("b", "shop"))
					f.flush()
					good := f.client(xdstest.ClientOptions{Delta: delta, Node: node("a", "shop")})
					f.subscribe(good, envoy.ClusterType, cluster("a"))
					f.await(good, envoy.ClusterType, cluster("a"))
					bad := f.client(xdstest.ClientOptions{Delta: delta, Node: node("a", "shop")})
					if limits.StreamsPerNode == 0 && limits.Streams == 0 {
						f.subscribe(bad, envoy.ClusterType, cluster("a"), cluster("b"))
						f.await(bad, envoy.ClusterType, cluster("a"), cluster("b"))
					}
					for i := range 10 { // until the stream has ended
						if err := bad.Subscribe(envoy.LoadAssignmentType, fmt.Sprint(i, strings.Repeat("x", 400))); err != nil {
							break
						}
					}
					for {
						if _, err := bad.Next(f.context()); err != nil {
							if got := status.Convert(err); status.Code(err) != codes.ResourceExhausted || !strings.Contains(got.Message(), what) {
								t.Errorf("the stream ended with %v, want %q", err, what)
							}
							break
						}
					}
					f.define([]string{"a"}, service("b", "shop"))
					f.await(good, envoy.ClusterType)
				})
			})
		}
	}
}

// counter counts what an Observer sees.
type counter struct {
	ads.NoObserver
	mu     sync.Mutex
	counts map[string]int
}

func (c *counter) add(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counts[what]++
}

func (c *counter) StreamOpened(ads.Stream) { c.add("opened") }
func (c *counter) StreamClosed(s ads.Stream, _ error) {
	c.add("closed " + s.Node)
}

func (c *counter) Request(_ ads.Stream, r ads.RequestEvent) {
	switch {
	case r.Refused:
		c.add("refused " + r.Error)
	case r.Nonce != "":
		c.add("accepted")
	default:
		c.add("asked")
	}
}

func (c *counter) Response(_ ads.Stream, r ads.ResponseEvent) {
	if r.Bytes == 0 || r.Nonce == "" || r.TypeURL != envoy.ClusterType {
		c.add(fmt.Sprintf("strange response %+v", r))
	}
	c.add(fmt.Sprintf("response of %d -%d", r.Resources, r.Removed))
}

func (c *counter) Pushed(p ads.PushEvent) {
	if p.Took < 0 || p.Request == nil {
		c.add(fmt.Sprintf("strange push %+v", p))
	}
	c.add("pushed")
}

func (c *counter) Converged(_ ads.Stream, typeURL string, after time.Duration) {
	c.add(fmt.Sprint(short(typeURL), " converged after ", after))
}

// TestObserver sees streams, requests, responses, answers, pushes and convergence.
func TestObserver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seen := &counter{counts: make(map[string]int)}
		f := serve(t, ads.Options{Observer: seen}, service("a", "shop"))
		f.flush()
		c := f.client(xdstest.ClientOptions{Delta: true, Node: node("a", "shop"), Manual: true})
		f.subscribe(c, envoy.ClusterType)
		next := func() xdstest.Response {
			t.Helper()
			r, err := c.Next(f.context())
			if err != nil {
				t.Fatal(err)
			}
			return r
		}
		if err := c.Ack(next()); err != nil {
			t.Fatal(err)
		}
		f.define([]string{"b"}, service("a", "shop"), service("b", "shop"))
		if err := c.Nack(next(), "no"); err != nil {
			t.Fatal(err)
		}
		f.define([]string{"a", "c"}, service("b", "shop"), service("c", "shop"))
		for _, d := range []time.Duration{7, 2} { // of one push
			r := next()
			time.Sleep(d * time.Millisecond)
			if err := c.Ack(r); err != nil {
				t.Fatal(err)
			}
		}
		f.waitApplied()
		c.Disconnect()
		f.stopNow()
		seen.mu.Lock()
		defer seen.mu.Unlock()
		if seen.counts["pushed"] < 3 {
			t.Errorf("%d pushes", seen.counts["pushed"])
		}
		delete(seen.counts, "pushed")
		check(t, "seen", seen.counts, map[string]int{
			"opened": 1, "asked": 1, "accepted": 3, "refused no": 1, "CDS converged after 7ms": 1, "CDS converged after 9ms": 1,
			"response of 1 -0": 3, "response of 0 -1": 1, "closed " + node("a", "shop").GetId(): 1,
		})
	})
}

// TestConnectsAreLogged, once for each stream that has an identity, at debug level
// like disconnects.
func TestConnectsAreLogged(t *testing.T) {
	for name, delta := range protocols() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log lockedBuffer
				refuse := atomic.NewBool(false)
				f := serve(t, ads.Options{
					Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})),
					Proxy: func(_ context.Context, node *core.Node) (*registry.Proxy, error) {
						if refuse.Load() {
							return nil, status.Error(codes.PermissionDenied, "no")
						}
						return ads.ProxyOf(node), nil
					},
				}, service("a", "shop"))
				c := f.client(xdstest.ClientOptions{Delta: delta, Node: node("a", "shop")})
				f.subscribe(c, envoy.ClusterType)
				f.subscribe(c, envoy.LoadAssignmentType, cluster("a"))
				f.await(c, envoy.LoadAssignmentType, cluster("a"))
				f.ReviewProxies(nil)
				said := log.take()
				check(t, "connects", strings.Count(said, "proxy connected"), 1)
				for _, want := range []string{
					"level=DEBUG", "node=" + node("a", "shop").GetId(), fmt.Sprint("delta=", delta), "Namespace:shop",
				} {
					check(t, want, strings.Contains(said, want), true)
				}
				refuse.Store(true)
				bad := f.client(xdstest.ClientOptions{Delta: delta, Node: node("b", "shop")})
				f.subscribe(bad, envoy.ClusterType)
				if _, err := bad.Next(f.context()); err == nil {
					t.Error("no refusal")
				}
				check(t, "connects of a stream that is refused", strings.Count(log.take(), "proxy connected"), 0)
			})
		})
	}
}
