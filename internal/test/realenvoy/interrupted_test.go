// SPDX-License-Identifier: Apache-2.0

//go:build unix

package realenvoy

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/pilotkit/pilotkit/internal/test/envoyproxy"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
)

// TestInterruptedSwitches: traffic moves while the control plane begins again in the middle,
// and while one of two gateways is stopped for a moment.
func TestInterruptedSwitches(t *testing.T) {
	playAll(t, []scenario{
		{name: "restarted control plane", write: inOneBatch, state: toANewService, play: playRestarts, mayLose: func(v variant) bool {
			// A SotW client does not say which clusters it has: the first response of the other
			// control plane takes away what its routes still lead to.
			return !v.delta
		}, options: func(s *stage) planeOptions {
			// Connections of others do not have this port when the server takes it again.
			return planeOptions{address: local(strconv.Itoa(int(envoyproxy.FreePorts(s.t, 1)[0])))}
		}},
		{name: "stopped gateway", write: inOneBatch, state: toANewService, play: playStops, options: func(s *stage) planeOptions {
			s.adapter = envoyproxy.NewAdapter(s.t)
			return planeOptions{grpc: []grpc.ServerOption{grpc.ChainStreamInterceptor(s.adapter.Intercept)}}
		}},
	})
}

// responsesOfASwitch is about how many there are: the control plane begins again behind each
// of them once, and behind the last one.
const responsesOfASwitch = 9

// playRestarts ends the control plane in the middle of each switch, and begins another one,
// which has the new state from the beginning.
func playRestarts(s *stage, n int) {
	s.t.Helper()
	s.gateway().AwaitReady()
	s.plane.Applied()
	c := s.startCalls(s.address)
	for state := 1; state <= n; state++ {
		end := s.startChurn()
		cut := s.wire.cutAfter((state - 1) % responsesOfASwitch)
		s.move(state, func() { s.restart(cut, end) }, c)
		c.settle()
	}
	s.finish(c)
}

// restart begins another control plane when no response passes any more, or all have passed.
// Before that it ends what writes to the first one.
func (s *stage) restart(cut <-chan struct{}, end func()) {
	s.t.Helper()
	ctx, cancel := context.WithCancel(s.plane.context())
	defer cancel()
	var failure error
	applied := make(chan struct{})
	go func() {
		defer close(applied)
		if failure = s.plane.Configs.Flush(ctx); failure == nil {
			failure = s.plane.Server.WaitApplied(ctx, nil)
		}
	}()
	select {
	case <-cut:
		cancel()
		<-applied
	case <-applied:
		if failure != nil {
			s.t.Fatal(failure)
		}
	}
	end()
	s.plane.Stop()
	s.wire.mend()
	s.wire.note("another control plane")
	s.plane = startPlane(s.t, s.plane.again())
	s.awaitConnected()
	s.plane.Applied()
}

// gatewayTypes are the types that a gateway subscribes to: clusters, their endpoints,
// listeners, and their routes.
const gatewayTypes = 4

// awaitConnected returns when all gateways have subscribed to their former resources.
func (s *stage) awaitConnected() {
	s.t.Helper()
	s.proxies[0].Await("connections", func() bool {
		proxies := s.plane.Server.Proxies()
		return len(proxies) == len(s.proxies) && !slices.ContainsFunc(proxies, func(p ads.ProxyStatus) bool { return len(p.Types) < gatewayTypes })
	})
}

// whileStopped bounds how long a switch takes for a gateway while another one is stopped.
const whileStopped = 5 * time.Second

// playStops stops one of two gateways, by turns before a switch and in it, and lets it go on
// after some switches of the other.
func playStops(s *stage, n int) {
	s.t.Helper()
	going, stopped := s.gateway(), s.gateway()
	for _, p := range s.proxies {
		p.AwaitReady()
	}
	s.plane.Applied()
	ofGoing, ofStopped := s.startCalls(s.addressAt(0)), s.startCalls(s.addressAt(1))
	end := s.startChurn()
	for state := 1; state <= n; {
		before := state%2 == 0
		if before {
			signal(s.t, stopped, syscall.SIGSTOP)
		}
		for range 3 {
			ofStopped.begun.Store(int64(state))
			s.move(state, func() {
				if !before {
					signal(s.t, stopped, syscall.SIGSTOP)
				}
				s.appliedAt(going)
			}, ofGoing)
			state++
		}
		signal(s.t, stopped, syscall.SIGCONT)
		s.plane.Applied()
		ofStopped.applied.Store(int64(state - 1))
		ofStopped.settle()
	}
	end()
	s.finish(ofGoing, ofStopped)
}

func signal(t *testing.T, p *envoyproxy.Proxy, sig syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(p.ProcessID(), sig); err != nil {
		t.Fatal(err)
	}
}

// nodeOf is the gateway of a number.
func nodeOf(i int) envoyproxy.Node {
	return envoyproxy.Node{Name: fmt.Sprintf("edge-%d", i), Namespace: "ingress", Labels: map[string]string{"app": "edge"}}
}

// addressAt returns the addresses of the ports of a gateway behind the adapter.
func (s *stage) addressAt(i int) func(port string) string {
	return func(port string) string {
		number, err := strconv.ParseUint(s.ports[port], 10, 32)
		if err != nil {
			s.t.Error(err)
		}
		return s.adapter.Address(nodeOf(i).ID(), "127.0.0.1", uint32(number))
	}
}

// appliedAt waits until one gateway is up to date.
func (s *stage) appliedAt(p *envoyproxy.Proxy) {
	s.t.Helper()
	id := nodeOf(slices.Index(s.proxies, p)).ID()
	ctx, cancel := context.WithTimeout(s.t.Context(), whileStopped)
	defer cancel()
	if err := s.plane.Configs.Flush(ctx); err != nil {
		s.t.Fatal(err)
	}
	if err := s.plane.Server.WaitApplied(ctx, func(status ads.ProxyStatus) bool { return status.ID == id }); err != nil {
		s.t.Fatal(err)
	}
}

// drainTime is how long an Envoy lets connections stay that were made by a listener as it was
// before a change.
const drainTime = "1"

// TestDrainedConnections: connections of TCP stay open when their route leads elsewhere and
// their cluster has gone. What ends them is the time that the Envoy gives connections of
// filter chains that have changed.
func TestDrainedConnections(t *testing.T) {
	eachProtocol(t, func(t *testing.T, delta bool) {
		t.Helper()
		s := newStage(t, scenario{write: inOneBatch, state: toANewServiceOfLines}.withDefaults(), variant{delta: delta})
		proxy := s.gateway("--drain-time-s", drainTime)
		proxy.AwaitReady()
		s.plane.Applied()
		client := &caller{gateway: s.address, ctx: t.Context()}
		l, err := client.dial("RAW")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		if got, err := l.ask(); err != nil || got != targetName(0) {
			t.Fatalf("first answer: %q, %v", got, err)
		}
		s.move(1, s.plane.Applied)
		proxy.Await("removal of the cluster", func() bool { return proxy.Clusters()["outbound|80||s0.local.test"] == nil })
		if got, err := l.ask(); err != nil || got != targetName(0) {
			t.Errorf("answer when the cluster has gone: %q, %v", got, err)
		}
		if got, err := client.line("RAW"); err != nil || got != targetName(1) {
			t.Errorf("answer on a new connection: %q, %v", got, err)
		}
		if l.scanner.Scan() {
			t.Errorf("%q is more than was asked for", l.scanner.Text())
		}
		if err := l.scanner.Err(); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("the connection is open %v after the change", patience)
		}
	})
}
