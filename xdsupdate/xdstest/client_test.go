// SPDX-License-Identifier: Apache-2.0

package xdstest_test

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	serverv3 "github.com/envoyproxy/go-control-plane/pkg/server/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

// peer is another project's xDS server: go-control-plane's linear cache.
type peer struct {
	cache *cache.LinearCache
	conn  *grpc.ClientConn

	mu    sync.Mutex
	sotw  []*discovery.DiscoveryRequest
	delta []*discovery.DeltaDiscoveryRequest
}

func startPeer(t *testing.T) (*peer, context.Context) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	p := &peer{cache: cache.NewLinearCache(envoy.ClusterType)}
	server := grpc.NewServer()
	discovery.RegisterAggregatedDiscoveryServiceServer(server, serverv3.NewServer(ctx, p.cache, serverv3.CallbackFuncs{
		StreamRequestFunc: func(_ int64, r *discovery.DiscoveryRequest) error {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.sotw = append(p.sotw, r)
			return nil
		},
		StreamDeltaRequestFunc: func(_ int64, r *discovery.DeltaDiscoveryRequest) error {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.delta = append(p.delta, r)
			return nil
		},
	}))
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := server.Serve(listener); err != nil && !errors.Is(err, grpc.ErrServerStopped) { // before it began
			t.Errorf("Serve: %v", err)
		}
	})
	p.conn, err = grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = p.conn.Close()
		cancel()
		server.Stop()
		serving.Wait()
	})
	return p, ctx
}

func (p *peer) set(t *testing.T, name string, timeout int64) {
	t.Helper()
	c := &clusterv3.Cluster{Name: name, ConnectTimeout: &durationpb.Duration{Seconds: timeout}}
	if err := p.cache.UpdateResource(name, types.Resource(c)); err != nil {
		t.Fatal(err)
	}
}

func names(want ...string) func(xdstest.State) bool {
	return func(s xdstest.State) bool { return cmp.Equal(s.Names(envoy.ClusterType), want) }
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestClient(t *testing.T) {
	for protocol, delta := range map[string]bool{"sotw": false, "delta": true} {
		t.Run(protocol, func(t *testing.T) {
			p, ctx := startPeer(t)
			p.set(t, "a", 1)
			p.set(t, "b", 1)
			c := xdstest.NewClient(p.conn, xdstest.ClientOptions{Delta: delta, Node: &core.Node{Id: "me"}})
			defer c.Close()
			must(t, c.Subscribe(envoy.ClusterType, "a")) // before Connect
			must(t, c.Connect(ctx))
			must(t, c.Await(ctx, names("a")))
			must(t, c.Subscribe(envoy.ClusterType, "b"))
			must(t, c.Await(ctx, names("a", "b")))
			must(t, c.Unsubscribe(envoy.ClusterType, "b"))
			p.set(t, "b", 2) // not for us any more
			p.set(t, "a", 2)
			must(t, c.Await(ctx, func(s xdstest.State) bool {
				m, err := s.Resources(envoy.ClusterType)["a"].Message()
				return err == nil && m.(*clusterv3.Cluster).GetConnectTimeout().GetSeconds() == 2
			}))
			must(t, c.Await(ctx, names("a")))
			version := c.State().Resources(envoy.ClusterType)["a"].Version

			must(t, c.Connect(ctx)) // reconnect with the client's versions
			must(t, c.Subscribe(envoy.ClusterType, "b"))
			must(t, c.Await(ctx, names("a", "b")))
			p.mu.Lock()
			defer p.mu.Unlock()
			if delta {
				for _, r := range p.delta {
					if got := r.GetInitialResourceVersions()["a"]; got == version && r.GetNode().GetId() == "me" {
						return
					}
				}
			}
			for _, r := range p.sotw {
				if r.GetVersionInfo() == version && r.GetNode().GetId() == "me" && r.GetResponseNonce() == "" {
					return
				}
			}
			t.Errorf("no request with version %q: %v %v", version, p.sotw, p.delta)
		})
	}
}

func TestClientRefuses(t *testing.T) {
	for protocol, delta := range map[string]bool{"sotw": false, "delta": true} {
		t.Run(protocol, func(t *testing.T) {
			p, ctx := startPeer(t)
			p.set(t, "a", 1)
			refused := make(chan struct{}, 10)
			c := xdstest.NewClient(p.conn, xdstest.ClientOptions{Delta: delta, Answer: func(r xdstest.Response) error {
				for _, res := range r.Resources {
					if m, err := res.Message(); err != nil || m.(*clusterv3.Cluster).GetConnectTimeout().GetSeconds() == 2 {
						refused <- struct{}{}
						return errors.New("not 2")
					}
				}
				return nil
			}})
			defer c.Close()
			must(t, c.Connect(ctx))
			must(t, c.Subscribe(envoy.ClusterType))
			must(t, c.Await(ctx, names("a")))
			p.set(t, "a", 2)
			<-refused
			p.set(t, "a", 3)
			p.set(t, "b", 3)
			must(t, c.Await(ctx, names("a", "b")))
			p.mu.Lock()
			defer p.mu.Unlock()
			for _, r := range p.sotw {
				if e := r.GetErrorDetail(); e != nil {
					if e.GetMessage() != "not 2" {
						t.Errorf("error_detail = %v", e)
					}
					return
				}
			}
			for _, r := range p.delta {
				if e := r.GetErrorDetail(); e != nil {
					if e.GetMessage() != "not 2" {
						t.Errorf("error_detail = %v", e)
					}
					return
				}
			}
			t.Error("nothing was refused")
		})
	}
}

func TestClientAnswersByHand(t *testing.T) {
	p, ctx := startPeer(t)
	p.set(t, "a", 1)
	c := xdstest.NewClient(p.conn, xdstest.ClientOptions{Manual: true})
	defer c.Close()
	must(t, c.Connect(ctx))
	must(t, c.Subscribe(envoy.ClusterType))
	r, err := c.Next(ctx)
	must(t, err)
	if got := c.State().Names(envoy.ClusterType); len(got) != 0 {
		t.Errorf("has %q before it accepted", got)
	}
	must(t, c.Nack(r, "no"))
	p.set(t, "a", 2)
	r, err = c.Next(ctx)
	must(t, err)
	must(t, c.Ack(r))
	must(t, c.Await(ctx, names("a")))
	if got := len(c.Responses()); got != 2 {
		t.Errorf("%d responses, want 2", got)
	}
}

func TestClientWithoutHistory(t *testing.T) {
	p, ctx := startPeer(t)
	p.set(t, "a", 1)
	c := xdstest.NewClient(p.conn, xdstest.ClientOptions{NoHistory: true})
	defer c.Close()
	must(t, c.Connect(ctx))
	must(t, c.Subscribe(envoy.ClusterType))
	must(t, c.Await(ctx, names("a")))
	if got := c.Responses(); len(got) != 0 {
		t.Errorf("kept %d responses", len(got))
	}
}

func TestClientErrors(t *testing.T) {
	p, ctx := startPeer(t)
	c := xdstest.NewClient(p.conn, xdstest.ClientOptions{})
	defer c.Close()
	if err := c.Await(ctx, names("a")); err == nil || err.Error() != "not connected" {
		t.Errorf("Await = %v, want not connected", err)
	}
	short, cancel := context.WithCancel(ctx)
	must(t, c.Connect(ctx)) // without a subscription, so there is no response
	cancel()
	if _, err := c.Next(short); !errors.Is(err, context.Canceled) {
		t.Errorf("Next = %v, want that of the context", err)
	}
	if err := c.Err(); err != nil {
		t.Errorf("Err = %v", err)
	}
	c.Close()
	if err := c.Await(ctx, names("a")); status.Code(errors.Unwrap(err)) != codes.Canceled {
		t.Errorf("Await = %v, want the end of the stream", err)
	}
}
