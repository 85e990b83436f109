// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/pace"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/wire"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// calls records the calls of an observer about streams.
type calls struct {
	NoObserver
	seen []string
}

func (c *calls) StreamOpened(Stream)        { c.seen = append(c.seen, "opened") }
func (c *calls) StreamClosed(Stream, error) { c.seen = append(c.seen, "closed") }

// TestEndBeforeOpening: a stream that was not opened is not closed.
func TestEndBeforeOpening(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		do   func(s *Server, st *stream)
		want []string
	}{
		"opened":       {func(s *Server, st *stream) { s.connected(st); s.closed(st) }, []string{"opened", "closed"}},
		"never opened": {func(s *Server, st *stream) { s.closed(st) }, nil},
	} {
		seen := &calls{}
		s := New(nil, Options{Observer: seen})
		st := &stream{server: s, conn: &connection{cache: s.cache}}
		st.about.Store(&Stream{ID: 1})
		test.do(s, st)
		if !slices.Equal(seen.seen, test.want) {
			t.Errorf("%s: %q, want %q", name, seen.seen, test.want)
		}
	}
}

// TestFlushAfterTheEnd: a connection that ends while a request is handled, and is flushed after that, sets no alarm.
// Nothing would stop the alarm, and the server would wait for it when it stops.
func TestFlushAfterTheEnd(t *testing.T) {
	t.Parallel()
	s := New(nil, Options{})
	c := &connection{cache: s.cache, stream: &stream{server: s}}
	sub, err := c.subscription(envoy.RouteType, 0)
	if err != nil {
		t.Fatal(err)
	}
	sub.rejections = &rejections{subscription: sub, retryAt: time.Now().Add(time.Hour)}
	s.cache.locked(c.flush)
	if c.alarm.timer == nil {
		t.Fatal("a rejected resource is not tried again")
	}
	s.cache.locked(c.close)
	s.cache.locked(c.flush)
	if c.alarm.timer != nil {
		t.Error("a closed connection has an alarm")
		c.sleep()
	}
}

// manualStream is a gRPC stream whose client sends requests, and reads responses, when the test does.
type manualStream struct {
	grpc.ServerStream
	ctx      context.Context //nolint:containedctx // it is what ServerStream has
	requests chan *discovery.DiscoveryRequest
}

func (m *manualStream) Context() context.Context { return m.ctx }

func (m *manualStream) RecvMsg(into any) error {
	select {
	case r := <-m.requests:
		data, err := proto.Marshal(r)
		if err != nil {
			return err
		}
		request := into.(*wire.Request)
		request.Reset()
		return request.Decode(data)
	case <-m.ctx.Done():
		return m.ctx.Err()
	}
}

func (m *manualStream) SendMsg(any) error { return m.ctx.Err() }

// TestEndWhileWaiting: the stream of a client that goes while the server makes it wait, for its work or for a large
// response, ends at once: it is not listed, and no caller of WaitApplied waits for it.
func TestEndWhileWaiting(t *testing.T) {
	for what, wait := range map[string]func(s *Server, st *stream){
		"work": func(s *Server, st *stream) {
			s.excess = pace.NewTurns(1)
			s.excess.Wait(nil)
			s.allowances.Spend(st.allowance, pace.WorkAtOnce)
		},
		"a large response": func(s *Server, _ *stream) {
			s.turns.Wait(nil)
			_ = s.SetResource("c", &clusterv3.Cluster{Name: "c", AltStatName: strings.Repeat("x", 2*wire.LargeResponse)})
			_ = s.Flush(context.Background())
		},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, stop := New(nil, Options{LargeResponses: 1}), make(chan struct{})
				running := make(chan struct{})
				go func() { defer close(running); s.Run(stop) }()
				ctx, leave := context.WithCancel(t.Context())
				client := &manualStream{ctx: ctx, requests: make(chan *discovery.DiscoveryRequest, 2)}
				ended := make(chan error, 1)
				go func() { ended <- s.serve(client, false) }()
				client.requests <- &discovery.DiscoveryRequest{TypeUrl: envoy.ClusterType, Node: &core.Node{Id: "n"}}
				synctest.Wait()
				wait(s, s.cache.selected(nil)[0].stream)
				client.requests <- &discovery.DiscoveryRequest{TypeUrl: envoy.ListenerType}
				synctest.Wait()
				if n := len(s.Proxies()); n != 1 || len(client.requests) != 0 {
					t.Errorf("%d proxies, and %d requests that were not received", n, len(client.requests))
				}
				leave()
				synctest.Wait()
				if n := len(s.Proxies()); n != 0 || len(ended) != 1 {
					t.Errorf("%d proxies are listed, %d streams have ended", n, len(ended))
				}
				synctest.Wait()
				if err := s.WaitApplied(t.Context(), nil); err != nil {
					t.Error(err)
				}
				close(stop)
				<-running
			})
		})
	}
}
