// SPDX-License-Identifier: Apache-2.0

package ads_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"go.uber.org/atomic"
	"google.golang.org/grpc"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

// manner is how a client of a fleet behaves.
type manner int

const (
	prompt       manner = iota
	slow                // answers when its gate lets it, and reads nothing until then
	dead                // asks, and never reads after the first response
	refusing            // rejects every third response
	reconnecting        // loses its stream now and then
)

// member is one client of a fleet.
type member struct {
	f      *fixture
	name   string
	manner manner
	delta  bool
	grpc   bool     // a gRPC client, not an Envoy
	all    bool     // subscribed to all clusters by wildcard
	hosts  []string // subscribed to by name

	conn   *grpc.ClientConn
	client *xdstest.Client
	gate   chan struct{} // a slow or dead client answers once for each value; closed: always
	peace  atomic.Bool   // a rejecting client accepts everything from now on
	count  int           // responses
}

// newFleet returns 100 clients of some hosts, which are not connected yet.
func newFleet(f *fixture, hosts []string, random *rand.Rand) []*member {
	manners := []manner{prompt, prompt, prompt, prompt, slow, slow, dead, refusing, reconnecting, reconnecting}
	var fleet []*member
	for i := range 100 {
		m := &member{
			f: f, name: fmt.Sprintf("client-%d", i), manner: manners[i%10],
			delta: i/10%2 == 1, grpc: i/20%2 == 1, all: i%4 == 0,
		}
		for range 40 {
			m.hosts = append(m.hosts, hosts[random.IntN(len(hosts))])
		}
		fleet = append(fleet, m)
	}
	return fleet
}

// options of the member's client; calm is for one that is as it should be.
func (m *member) options(calm bool) xdstest.ClientOptions {
	o := xdstest.ClientOptions{Node: node(m.name, "shop"), Delta: m.delta, NoHistory: true}
	if m.grpc {
		o.Node.UserAgentName = "gRPC Go"
	}
	if !calm {
		o.Answer = m.answer
	}
	return o
}

// answer is called for one response at a time.
func (m *member) answer(xdstest.Response) error {
	m.count++
	switch {
	case m.manner == slow, m.manner == dead && m.count > 1:
		<-m.gate
	case m.manner == refusing && m.count%3 == 0 && !m.peace.Load():
		return errors.New("not now")
	}
	return nil
}

// connect restarts the client, like a new process.
func (m *member) connect(calm bool) {
	m.f.t.Helper()
	conn := dialTo(m.f.t, m.f.listener)
	m.conn, m.client, m.gate, m.count = conn, xdstest.NewClient(conn, m.options(calm)), make(chan struct{}), 0
	m.reconnect()
	var clusters, listeners []string
	for _, host := range m.hosts {
		clusters = append(clusters, envoy.ClusterName(80, registry.Hostname(host)))
		listeners = append(listeners, envoy.ListenerName(80, registry.Hostname(host)))
	}
	if m.grpc {
		m.f.subscribe(m.client, envoy.ListenerType, listeners...)
		m.f.subscribe(m.client, envoy.RouteType, clusters...)
	}
	if m.all && !m.grpc {
		m.f.subscribe(m.client, envoy.ClusterType)
	} else {
		m.f.subscribe(m.client, envoy.ClusterType, clusters...)
	}
	m.f.subscribe(m.client, envoy.LoadAssignmentType, clusters...)
}

// reconnect replaces the stream; the client keeps its resources.
func (m *member) reconnect() {
	m.f.t.Helper()
	if err := m.client.Connect(context.Background()); err != nil {
		m.f.t.Fatal(err)
	}
}

// answerOnce lets a slow client answer, if it waits for that.
func (m *member) answerOnce() {
	select {
	case m.gate <- struct{}{}:
	default:
	}
}

// disconnect ends the client.
func (m *member) disconnect() {
	if m.client == nil {
		return
	}
	m.awake()
	m.client.Close()
	_ = m.conn.Close()
	m.client = nil
}

// awake lets a slow, dead or rejecting client answer from now on.
func (m *member) awake() {
	m.peace.Store(true)
	select {
	case <-m.gate: // closed already: only answerOnce sends
	default:
		close(m.gate)
	}
}

// join connects the fleet.
func join(fleet []*member) {
	for _, m := range fleet {
		m.peace.Store(false)
		m.connect(false)
	}
}

// leave disconnects the fleet, and returns when the server knows.
func leave(tb testing.TB, f *fixture, fleet []*member) {
	tb.Helper()
	for _, m := range fleet {
		m.disconnect()
	}
	poll(tb, "the server to see that clients left", func() bool { return len(f.Proxies()) == 0 })
}

// calm makes every client well-behaved: dead and rejecting ones come back with their resources, and
// all of them answer.
func calm(fleet []*member) {
	for _, m := range fleet {
		m.awake()
		if m.manner == dead || m.manner == refusing {
			m.reconnect()
		}
	}
}
