// SPDX-License-Identifier: Apache-2.0

package realenvoy

import (
	"crypto/tls"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/configstore/manifest"
	"github.com/pilotkit/pilotkit/internal/test/envoyproxy"
)

// variant is how a scenario is played.
type variant struct {
	program envoyproxy.Program
	delta   bool
	// churn adds and removes endpoints meanwhile, including those of the scenario's services.
	churn bool
}

func (v variant) String() string {
	name := "SotW"
	if v.delta {
		name = "delta"
	}
	if v.churn {
		name += ", churn"
	}
	return name + ", " + v.program.Version
}

// targetCount is how many workloads answer in turns: more than may answer at a time, so
// that it is seen when another one does.
const targetCount = 6

func allTargets() (names []string) {
	for i := range targetCount {
		names = append(names, targetName(i))
	}
	return names
}

// stage is the environment of a scenario: a control plane, gateways, and workloads.
type stage struct {
	t *testing.T
	scenario
	variant

	plane   *plane
	writer  writer
	wire    *wire
	issuer  *authority
	targets []*target
	spares  []*target // the same ones on other ports
	ports   map[string]string
	texts   *strings.Replacer
	proxies []*envoyproxy.Proxy
	adapter *envoyproxy.Adapter // of gateways that are several
	// written are the objects of the last state that was written.
	written []configstore.Config
	state   int
	took    []time.Duration // of each switch
}

// newStage starts everything but gateways, in the first state.
func newStage(t *testing.T, s scenario, v variant) *stage {
	t.Helper()
	st := &stage{t: t, scenario: s, variant: v, wire: newWire(), issuer: newAuthority(t), ports: make(map[string]string)}
	st.issuerTargets()
	var replace []string
	for i, port := range envoyproxy.FreePorts(t, len(gatewayPorts)) {
		st.ports[gatewayPorts[i]] = strconv.Itoa(int(port))
		replace = append(replace, gatewayPorts[i], st.ports[gatewayPorts[i]])
	}
	st.texts = strings.NewReplacer(replace...)
	var o planeOptions
	if s.options != nil {
		o = s.options(st)
	}
	o.mesh = withoutMeshTLS()
	o.grpc = append(o.grpc, grpc.ChainStreamInterceptor(st.wire.intercept))
	st.plane = startPlane(t, o)
	st.plane.vault.set("ingress", "kubernetes://edge", st.issuer.secret("*.example.com"))
	st.writer = s.write(st)
	st.write(0)
	st.plane.Applied()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("messages:\n%s", st.wire.text())
		}
	})
	return st
}

func (s *stage) issuerTargets() {
	certificate := s.issuer.pair(s.t, "*.example.com")
	for i := range targetCount {
		name := targetName(i)
		s.targets = append(s.targets, startTarget(s.t, name, certificate))
		if s.churn {
			s.spares = append(s.spares, startTarget(s.t, name, certificate))
		}
	}
}

// targetName is the name of the workload of a number; they take turns.
func targetName(i int) string { return "b" + strconv.Itoa(i%targetCount) }

// gateway starts an Envoy, with further flags.
func (s *stage) gateway(flags ...string) *envoyproxy.Proxy {
	s.t.Helper()
	p := envoyproxy.Start(s.t, envoyproxy.Options{Program: s.program, Delta: s.delta, Server: s.plane.Address, Node: nodeOf(len(s.proxies)), Args: flags})
	s.proxies = append(s.proxies, p)
	return p
}

// address is that of a port of a gateway that has the addresses of its Gateways.
func (s *stage) address(port string) string { return local(s.ports[port]) }

// clientTLS trusts the workloads and the gateways.
func (s *stage) clientTLS() *tls.Config {
	return &tls.Config{RootCAs: s.issuer.Pool(), ServerName: shopHost, MinVersion: tls.VersionTLS12}
}

// objects returns the objects of a state.
func (s *stage) objects(state int) []configstore.Config {
	s.t.Helper()
	text := s.fixed + s.scenario.state(state)
	if s.entries == nil {
		for _, w := range s.targets {
			text += w.entry("ingress", w.name)
		}
	} else {
		text += s.entries(s, state)
	}
	objects, err := manifest.ParseAll(istio.Schemas(), []byte(s.texts.Replace(text)), manifest.Options{})
	if err != nil {
		s.t.Fatal(err)
	}
	return objects
}

// write moves to a state.
func (s *stage) write(state int) {
	s.t.Helper()
	next := s.objects(state)
	s.writer(s, difference(s.written, next), next)
	s.state, s.written = state, next
}

// difference returns the mutations that lead from some objects to others: additions, changes, and
// deletions, services and policies before the objects that reference them.
func difference(from, to []configstore.Config) []configstore.Mutation {
	var out []configstore.Mutation
	for _, c := range to {
		i := slices.IndexFunc(from, func(o configstore.Config) bool { return o.Key() == c.Key() })
		if i < 0 || !proto.Equal(from[i].Spec, c.Spec) {
			out = append(out, configstore.Mutation{Op: configstore.OpUpsert, Config: c})
		}
	}
	for _, c := range from {
		if !slices.ContainsFunc(to, func(o configstore.Config) bool { return o.Key() == c.Key() }) {
			out = append(out, configstore.Mutation{Op: configstore.OpDelete, Config: c})
		}
	}
	slices.SortStableFunc(out, func(a, b configstore.Mutation) int { return step(a) - step(b) })
	return out
}

// step is the position of a mutation among single writes: referenced objects first, then the
// referencing ones, and deletions of referenced objects last.
func step(m configstore.Mutation) int {
	refers := m.Config.GroupVersionKind == istio.VirtualService || m.Config.GroupVersionKind == istio.Gateway
	switch {
	case m.Op == configstore.OpDelete && refers:
		return 2
	case m.Op == configstore.OpDelete:
		return 3
	case refers:
		return 1
	default:
		return 0
	}
}

// play moves traffic n times under load.
func (s *stage) play(n int) {
	s.t.Helper()
	if s.scenario.play != nil {
		s.scenario.play(s, n)
		return
	}
	s.gateway().AwaitReady()
	s.plane.Applied()
	c := s.startCalls(s.address)
	end := s.startChurn()
	for state := 1; state <= n; state++ {
		s.move(state, func() { s.plane.Applied() }, c)
	}
	end()
	s.finish(c)
}

// milliseconds is a duration with a part of them.
func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// startCalls starts the clients of a gateway.
func (s *stage) startCalls(address func(port string) string) *calls {
	s.t.Helper()
	c := startCalls(s.t, func(state int, target string) bool { return slices.Contains(s.answers(state), target) }, s.clientTLS(), address, s.call)
	c.begun.Store(int64(s.state))
	c.applied.Store(int64(s.state))
	return c
}

// move moves to a state and waits until it is applied.
func (s *stage) move(state int, applied func(), all ...*calls) {
	s.t.Helper()
	s.wire.note("state %d", state)
	begun := time.Now()
	for _, c := range all {
		c.begun.Store(int64(state))
	}
	s.write(state)
	applied()
	s.took = append(s.took, time.Since(begun))
	s.wire.note("state %d is applied", state)
	for _, c := range all {
		c.applied.Store(int64(state))
	}
}

// finish ends the clients, and fails the test if calls were lost or something was refused.
func (s *stage) finish(all ...*calls) {
	s.t.Helper()
	for _, c := range all {
		c.settle()
		c.end()
		slices.Sort(s.took)
		s.t.Logf("%d switches (median %.1f ms, at most %.1f ms), %d calls, %d of them twice, %d lost", len(s.took), milliseconds(s.took[len(s.took)/2]),
			milliseconds(s.took[len(s.took)-1]), c.total, c.again.Load(), c.lost)
		if c.lost > 0 && !s.mayLose(s.variant) {
			s.t.Errorf("%d of %d calls were lost in %d switches: %v; %s", c.lost, c.total, len(s.took), c.reasons, strings.Join(c.examples, "; "))
		}
	}
	s.plane.Accepted()
	for _, p := range s.proxies {
		if refused := p.Refused(); len(refused) > 0 {
			s.t.Errorf("refused: %v", refused)
		}
	}
}

// startChurn lets the second endpoint of each workload come and go until the returned
// function is called.
func (s *stage) startChurn() (end func()) {
	s.t.Helper()
	if !s.churn {
		return func() {}
	}
	store := s.plane.Configs
	var entries []configstore.Config
	for _, w := range s.spares {
		parsed, err := manifest.ParseAll(istio.Schemas(), []byte(w.entry("ingress", w.name+"-spare")), manifest.Options{})
		if err != nil {
			s.t.Fatal(err)
		}
		entries = append(entries, parsed...)
	}
	stop := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() {
		again := time.NewTicker(10 * time.Millisecond)
		defer again.Stop()
		for i := 0; ; i++ {
			m := configstore.Mutation{Op: configstore.OpUpsert, Config: entries[i%len(entries)]}
			if i/len(entries)%2 == 1 {
				m.Op = configstore.OpDelete
			}
			if _, err := store.Apply(m); err != nil && !errors.Is(err, configstore.ErrNotFound) {
				s.t.Errorf("churn: %v", err)
				return
			}
			select {
			case <-again.C:
			case <-stop:
				return
			}
		}
	})
	end = sync.OnceFunc(func() { close(stop); running.Wait() })
	s.t.Cleanup(end)
	return end
}
