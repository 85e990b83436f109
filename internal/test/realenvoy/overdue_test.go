// SPDX-License-Identifier: Apache-2.0

//go:build unix

package realenvoy

import (
	"slices"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/pilotkit/pilotkit/internal/test/envoyproxy"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// TestOverdueGateway: a gateway that is stopped for longer than the server waits for its ACKs is
// reported, loses requests for resources that it gets too early, and none once it has caught up;
// another gateway never loses any.
func TestOverdueGateway(t *testing.T) {
	eachProtocol(t, func(t *testing.T, delta bool) {
		t.Helper()
		s := newStage(t, scenario{
			write: inOneBatch, state: toANewService,
			options: func(s *stage) planeOptions {
				s.adapter = envoyproxy.NewAdapter(s.t)
				return planeOptions{
					grpc: []grpc.ServerOption{grpc.ChainStreamInterceptor(s.adapter.Intercept)},
					ads:  ads.Options{PhaseTimeout: time.Second}, // an Envoy on a busy machine takes more than 100 ms
				}
			},
		}.withDefaults(), variant{delta: delta})
		going, stopped := s.gateway(), s.gateway()
		going.AwaitReady()
		stopped.AwaitReady()
		s.plane.Applied()
		c := s.startCalls(s.addressAt(0))
		signal(t, stopped, syscall.SIGSTOP)
		s.move(1, func() { s.appliedAt(going) }, c)
		going.Await("report of the gateway that is stopped", func() bool {
			return slices.ContainsFunc(s.plane.Server.Proxies(), func(p ads.ProxyStatus) bool {
				return p.ID == nodeOf(1).ID() && p.Types[envoy.ClusterType].Overdue
			})
		})
		s.move(2, func() { s.appliedAt(going) }, c)
		signal(t, stopped, syscall.SIGCONT)
		s.plane.Applied()
		caughtUp := s.startCalls(s.addressAt(1))
		for state := 3; state < shortRound; state++ {
			s.move(state, s.plane.Applied, c, caughtUp)
		}
		s.finish(c, caughtUp)
	})
}
