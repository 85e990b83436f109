// SPDX-License-Identifier: Apache-2.0

package ads_test

import (
	"context"
	"errors"
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
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

// counter records the events of an Observer.
type counter struct {
	ads.NoObserver
	mu     sync.Mutex
	counts map[string]int
	order  []string // of all but pushes
}

func (c *counter) add(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counts[what]++
	if what != "pushed" {
		c.order = append(c.order, what)
	}
}

func (c *counter) StreamOpened(s ads.Stream) { c.add("opened " + s.Node) }
func (c *counter) StreamClosed(s ads.Stream, err error) {
	c.add(fmt.Sprintf("closed %s: %s", s.Node, status.Code(err)))
}

func (c *counter) Request(_ ads.Stream, r ads.RequestEvent) {
	if r.Bytes == 0 || r.TypeURL != envoy.ClusterType {
		c.add(fmt.Sprintf("strange request %+v", r))
	}
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
		c.Close()
		synctest.Wait()
		f.stopNow()
		seen.mu.Lock()
		defer seen.mu.Unlock()
		if seen.counts["pushed"] < 3 {
			t.Errorf("%d pushes", seen.counts["pushed"])
		}
		check(t, "seen", seen.order, []string{
			"opened " + node("a", "shop").GetId(), "asked",
			"response of 1 -0", "accepted",
			"response of 1 -0", "refused no",
			"response of 1 -0", "accepted", "CDS converged after 7ms",
			"response of 0 -1", "accepted", "CDS converged after 9ms",
			"closed " + node("a", "shop").GetId() + ": Canceled",
		})
	})
}

// timed notes the times that an observer receives.
type timed struct {
	ads.NoObserver
	waited, converged atomic.Duration
}

func (w *timed) Pushed(p ads.PushEvent) { w.waited.Store(p.Waited) }

func (w *timed) Converged(_ ads.Stream, _ string, after time.Duration) { w.converged.Store(after) }

// TestTimesCountFromTheRequest: the wait of a push, and the time that a client took, count from the
// request of the push.
func TestTimesCountFromTheRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen timed
		f := serve(t, ads.Options{Observer: &seen}, service("a", "shop"))
		f.flush()
		c := f.client(xdstest.ClientOptions{Node: node("a", "shop")})
		f.subscribe(c, envoy.ClusterType)
		f.await(c, envoy.ClusterType, cluster("a"))
		f.waitApplied()
		f.services.set(service("b", "shop"))
		f.ConfigUpdate(&xdsupdate.PushRequest{Full: true, Start: time.Now().Add(-5 * time.Second)})
		f.waitApplied()
		synctest.Wait()
		check(t, "waited", seen.waited.Load(), 5*time.Second)
		check(t, "converged after", seen.converged.Load(), 5*time.Second)
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
					"level=DEBUG", "node=" + node("a", "shop").GetId(), fmt.Sprint("delta=", delta), `view="namespace \"shop\", Envoy"`,
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

// TestRefusalsAreLogged: resources once for each version and proxy, streams with the
// reason, both as warnings.
func TestRefusalsAreLogged(t *testing.T) {
	for name, delta := range protocols() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log lockedBuffer
				options := ads.Options{Logger: slog.New(slog.NewTextHandler(&log, nil)), Limits: ads.Limits{Names: 1, Streams: 2}}
				f := serve(t, options, service("a", "shop"), service("b", "shop"))
				var clients []*xdstest.Client
				for _, who := range []string{"one", "two"} {
					c := f.client(xdstest.ClientOptions{
						Delta: delta, Node: node(who, "shop"), Answer: func(xdstest.Response) error { return errors.New("not now") },
					})
					f.subscribe(c, envoy.LoadAssignmentType, cluster("a"))
					clients = append(clients, c)
				}
				warned := func(what string, of ...string) {
					t.Helper()
					synctest.Wait()
					f.waitApplied()
					said := log.take()
					check(t, what+": warnings", strings.Count(said, "level=WARN"), len(of))
					for _, node := range of {
						check(t, what+": "+node, strings.Count(said, "node="+node), 1)
					}
					if len(of) > 0 {
						check(t, what+": with the reason", strings.Contains(said, "not now"), true)
						check(t, what+": with the type", strings.Contains(said, envoy.LoadAssignmentType), true)
					}
				}
				one, two := node("one", "shop").GetId(), node("two", "shop").GetId()
				warned("the first version", one, two)
				first := clients[0].Responses()[0]
				first.Nonce = "unknown"
				if err := clients[0].Nack(first, "not now"); err != nil {
					t.Fatal(err)
				}
				warned("what is no answer")
				f.define([]string{"b"}, service("a", "shop"))
				warned("another service")
				f.eds("a", "shop", endpoint("10.0.0.1", 80))
				warned("the second version", one, two)

				f.subscribe(clients[0], envoy.ClusterType, cluster("a"))
				synctest.Wait()
				said := log.take()
				check(t, "a stream", strings.Count(said, `msg="stream refused" node=`+one), 1)
				check(t, "with the reason", strings.Contains(said, "more than 1 resources subscribed by name"), true)
				third := f.client(xdstest.ClientOptions{Delta: delta, Node: node("two", "shop")})
				f.subscribe(third, envoy.ClusterType)
				synctest.Wait()
				check(t, "a stream too many", strings.Count(log.take(), "more than 2 streams"), 0) // one has ended
				fourth := f.client(xdstest.ClientOptions{Delta: delta, Node: node("two", "shop")})
				_ = fourth.Subscribe(envoy.ClusterType)
				synctest.Wait()
				check(t, "a stream too many", strings.Count(log.take(), "more than 2 streams"), 1)
			})
		})
	}
}

// TestObserverOfFullStates: a SotW response with all clusters counts the resources in it, not the
// new ones.
func TestObserverOfFullStates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seen := &counter{counts: make(map[string]int)}
		f := serve(t, ads.Options{Observer: seen}, service("a", "shop"))
		f.flush()
		c := f.client(xdstest.ClientOptions{Node: node("a", "shop")})
		f.subscribe(c, envoy.ClusterType)
		f.await(c, envoy.ClusterType, cluster("a"))
		f.define([]string{"b"}, service("a", "shop"), service("b", "shop"))
		f.await(c, envoy.ClusterType, cluster("a"), cluster("b"))
		f.waitApplied()
		check(t, "responses of two clusters", seen.counts["response of 2 -0"], 1)
	})
}

// TestLongRefusal rejects a response with a text of 300 KB. The kept and shown part of it is
// bounded.
func TestLongRefusal(t *testing.T) {
	for name, delta := range protocols() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := serve(t, ads.Options{}, service("a", "shop"))
				f.flush()
				c := f.client(xdstest.ClientOptions{Delta: delta, Node: node("a", "shop"), Manual: true})
				f.subscribe(c, envoy.ClusterType)
				r, err := c.Next(f.context())
				if err != nil {
					t.Fatal(err)
				}
				if err := c.Nack(r, strings.Repeat("x", 300_000)); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				faults, _ := f.Faults()
				for _, fault := range faults {
					if text := fault.Text; !strings.HasSuffix(text, "(300000 bytes)") || len(text) > 5000 {
						t.Errorf("%d bytes: %.40q", len(text), text)
					}
				}
				check(t, "faults of the proxy", len(faults), 1)
			})
		})
	}
}
