// SPDX-License-Identifier: Apache-2.0

package ads_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"go.uber.org/atomic"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

// privateServices are services of namespaces that only they see.
func privateServices() []*registry.Service {
	return []*registry.Service{
		service("a", "first", exportTo(".")), service("b", "second", exportTo(".")), service("c", "third", exportTo(".")),
	}
}

// answers is a program that identifies a proxy when the test lets it, with its state at the time of
// the call.
type answers struct {
	namespace atomic.String
	mu        sync.Mutex
	waiting   []chan struct{}
}

func (a *answers) proxy(_ context.Context, n *core.Node) (*registry.Proxy, error) {
	p := ads.ProxyOf(n)
	p.Namespace = a.namespace.Load()
	answer := make(chan struct{})
	a.mu.Lock()
	a.waiting = append(a.waiting, answer)
	a.mu.Unlock()
	<-answer
	return p, nil
}

// answerAll answers all calls, including later ones. Of several waiting calls the last one is
// answered first if reversed is set. The test is in a bubble. A server that calls again and again
// gets no more answers, and has not converged.
func (a *answers) answerAll(reversed bool) {
	for range 100 {
		synctest.Wait()
		a.mu.Lock()
		waiting := a.waiting
		a.waiting = nil
		a.mu.Unlock()
		if len(waiting) == 0 {
			return
		}
		if reversed {
			slices.Reverse(waiting)
		}
		for _, answer := range waiting {
			close(answer)
			synctest.Wait()
		}
	}
}

// TestProxyUpdates: in the end the server has the identity that the program returns after the last
// ProxyUpdate, whether that comes while the client connects, or during another one, and in any
// order of the answers.
func TestProxyUpdates(t *testing.T) {
	for _, reversed := range []bool{false, true} {
		for what, update := range map[string]func(f *fixture, host *answers, namespaces ...string){
			"one after the other": func(f *fixture, host *answers, namespaces ...string) {
				for _, namespace := range namespaces {
					host.namespace.Store(namespace)
					go f.ProxyUpdate("", "10.0.0.1")
					host.answerAll(reversed)
				}
			},
			"at once": func(f *fixture, host *answers, namespaces ...string) {
				for _, namespace := range namespaces {
					host.namespace.Store(namespace)
					go f.ProxyUpdate("", "10.0.0.1")
					synctest.Wait()
				}
				host.answerAll(reversed)
			},
			"reviewed at once": func(f *fixture, host *answers, namespaces ...string) {
				for _, namespace := range namespaces {
					host.namespace.Store(namespace)
					go f.ReviewProxies(nil)
					synctest.Wait()
				}
				host.answerAll(reversed)
			},
		} {
			t.Run(fmt.Sprintf("%s/reversed=%v", what, reversed), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					f, host, c := connecting(t)
					update(f, host, "second")
					check(t, "of a client that is connecting", c.State().Names(envoy.ClusterType), []string{cluster("b")})
					update(f, host, "first", "third")
					check(t, "of a client that is connected", c.State().Names(envoy.ClusterType), []string{cluster("c")})
				})
			})
		}
	}
}

// connecting returns a client that the program is identifying, and will first place into the
// namespace first.
func connecting(t *testing.T) (*fixture, *answers, *xdstest.Client) {
	t.Helper()
	host := &answers{}
	host.namespace.Store("first")
	f := serve(t, ads.Options{Proxy: host.proxy}, privateServices()...)
	f.flush()
	c := f.client(xdstest.ClientOptions{Delta: true, Node: node("a", "x")})
	f.subscribe(c, envoy.ClusterType)
	synctest.Wait()
	return f, host, c
}

// TestProxyUpdateWhileAskedAgain: the last of two ProxyUpdates for a connecting client counts, too,
// in any order of the answers.
func TestProxyUpdateWhileAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, host, c := connecting(t)
		host.namespace.Store("second")
		f.ProxyUpdate("", "10.0.0.1")
		host.mu.Lock()
		close(host.waiting[0])
		host.waiting = nil
		host.mu.Unlock()
		synctest.Wait() // it is asked again, and the client's address is known
		host.namespace.Store("third")
		go f.ProxyUpdate("", "10.0.0.1")
		host.answerAll(true)
		check(t, "clusters", c.State().Names(envoy.ClusterType), []string{cluster("c")})
	})
}

// TestNodeChanges: a stream may not become another's.
func TestNodeChanges(t *testing.T) {
	// On each stream the third request is of another node.
	nodes := []*core.Node{node("a", "first"), node("a", "first"), node("b", "first")}
	refused := func(t *testing.T, err error) {
		t.Helper()
		if status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), "node id changed") {
			t.Errorf("Recv = %v, want InvalidArgument because the node changed", err)
		}
	}
	t.Run("sotw", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f := serve(t, ads.Options{}, privateServices()...)
			s, err := discovery.NewAggregatedDiscoveryServiceClient(f.dial()).StreamAggregatedResources(f.context())
			if err != nil {
				t.Fatal(err)
			}
			for i, n := range nodes {
				if err := s.Send(&discovery.DiscoveryRequest{Node: n, TypeUrl: envoy.ListenerType, ResourceNames: []string{fmt.Sprint("none-", i)}}); err != nil {
					t.Fatal(err)
				}
			}
			_, err = s.Recv()
			refused(t, err)
		})
	})
	t.Run("delta", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f := serve(t, ads.Options{}, privateServices()...)
			s, err := discovery.NewAggregatedDiscoveryServiceClient(f.dial()).DeltaAggregatedResources(f.context())
			if err != nil {
				t.Fatal(err)
			}
			for _, n := range nodes {
				if err := s.Send(&discovery.DeltaDiscoveryRequest{Node: n, TypeUrl: envoy.RouteType}); err != nil {
					t.Fatal(err)
				}
			}
			_, err = s.Recv()
			refused(t, err)
		})
	})
}

// TestRefusedBeforeAnything: a client that the program does not know is sent nothing,
// and the log names it.
func TestRefusedBeforeAnything(t *testing.T) {
	for name, delta := range protocols() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log lockedBuffer
				f := serve(t, ads.Options{
					Logger: slog.New(slog.NewTextHandler(&log, nil)),
					Proxy: func(context.Context, *core.Node) (*registry.Proxy, error) {
						return nil, status.Error(codes.Unauthenticated, "no certificate")
					},
				}, service("a", "shop"))
				f.flush()
				c := f.client(xdstest.ClientOptions{Delta: delta, Node: node("a", "shop")})
				f.subscribe(c, envoy.ClusterType)
				if _, err := c.Next(f.context()); status.Code(err) != codes.Unauthenticated || status.Convert(err).Message() == "" {
					t.Errorf("Next = %v, want Unauthenticated", err)
				}
				check(t, "proxies", len(f.Proxies()), 0)
				if said, want := log.take(), `msg="stream refused" node=`+node("a", "shop").GetId(); !strings.Contains(said, want) {
					t.Errorf("the log says %q, want %q", said, want)
				}
			})
		})
	}
}
