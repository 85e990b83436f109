// SPDX-License-Identifier: Apache-2.0

package etcd_test

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/atomic"
	networking "istio.io/api/networking/v1"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/etcd"
	"github.com/pilotkit/pilotkit/configstore/istio"
)

// entry is a ServiceEntry with one endpoint.
func entry(name, address string) configstore.Config {
	return configstore.Config{
		Meta: configstore.Meta{GroupVersionKind: istio.ServiceEntry, Name: name, Namespace: "ns"},
		Spec: &networking.ServiceEntry{
			Hosts: []string{name + ".example.com"}, Location: networking.ServiceEntry_MESH_INTERNAL,
			Ports:      []*networking.ServicePort{{Number: 80, Name: "http", Protocol: "HTTP"}},
			Resolution: networking.ServiceEntry_STATIC, Endpoints: []*networking.WorkloadEntry{{Address: address}},
		},
	}
}

// addressOf returns the address of an entry, or "" for nil.
func addressOf(c *configstore.Config) string {
	if c == nil {
		return ""
	}
	return c.Spec.(*networking.ServiceEntry).GetEndpoints()[0].GetAddress()
}

// replica is the cache of one of several processes.
type replica struct {
	*etcd.Cache
	mu      sync.Mutex
	history []string
	batches [][]string
}

// newReplica returns a cache with its own client that does not run yet. It records its events.
func newReplica(tb testing.TB, addr string, opts etcd.Options) *replica {
	tb.Helper()
	return replicaOf(tb, newClient(tb, addr), opts)
}

// replicaOf returns a replica with a client. Its default timeout is long, because the speed of etcd
// depends on the machine.
func replicaOf(tb testing.TB, client *clientv3.Client, opts etcd.Options) *replica {
	tb.Helper()
	opts.Timeout = cmp.Or(opts.Timeout, patience)
	c, err := etcd.New(client, istio.Schemas(), opts)
	if err != nil {
		tb.Fatal(err)
	}
	r := &replica{Cache: c}
	var kinds []configstore.GroupVersionKind
	for _, s := range istio.Schemas().All() {
		kinds = append(kinds, s.GroupVersionKind)
	}
	c.Subscribe(kinds, func(changes []configstore.Change) {
		var batch []string
		for _, ch := range changes {
			batch = append(batch, describe(ch))
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.history = append(r.history, batch...)
		r.batches = append(r.batches, batch)
	})
	return r
}

func describe(ch configstore.Change) string {
	if ch.Event == configstore.EventDelete {
		return "delete " + ch.Curr.Key().Object() // with the last delivered state
	}
	return ch.Event.String() + " " + ch.Curr.Key().Object() + " at " + ch.Curr.ResourceVersion
}

// run runs the cache until the test ends or the returned function is called.
func (r *replica) run(tb testing.TB) (end func()) {
	tb.Helper()
	stop := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() { r.Run(stop) })
	end = sync.OnceFunc(func() {
		close(stop)
		running.Wait()
	})
	tb.Cleanup(end)
	return end
}

// start returns a replica that runs and has synced.
func start(tb testing.TB, addr string, opts etcd.Options) *replica {
	tb.Helper()
	r := newReplica(tb, addr, opts)
	r.run(tb)
	eventually(tb, "the cache has synced", r.HasSynced)
	return r
}

// take returns the events since its last call.
func (r *replica) take(tb testing.TB) []string {
	tb.Helper()
	if err := r.Flush(within(tb)); err != nil {
		tb.Fatal(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	taken := r.history
	r.history, r.batches = nil, nil
	return taken
}

// expect expects exactly these events, without their revisions, since the last call.
func (r *replica) expect(tb testing.TB, want ...string) {
	tb.Helper()
	var got []string
	for _, event := range r.take(tb) {
		var verb, kind, name string
		_, _ = fmt.Sscan(event, &verb, &kind, &name)
		got = append(got, verb+" "+name)
	}
	if !slices.Equal(got, want) {
		tb.Errorf("events %q, want %q", got, want)
	}
}

// awaits returns when the replica has an address for an object, or, for "", when the object is
// deleted.
func (r *replica) awaits(tb testing.TB, name, address string) {
	tb.Helper()
	eventually(tb, fmt.Sprintf("%s is %q", name, address), func() bool { return addressOf(r.get(name)) == address })
}

func (r *replica) get(name string) *configstore.Config { return r.Get(istio.ServiceEntry, name, "ns") }

func (r *replica) create(tb testing.TB, c configstore.Config) string {
	tb.Helper()
	revision, err := r.Create(c)
	if err != nil {
		tb.Fatal(err)
	}
	return revision
}

func (r *replica) update(tb testing.TB, c configstore.Config) string {
	tb.Helper()
	revision, err := r.Update(c)
	if err != nil {
		tb.Fatal(err)
	}
	return revision
}

func (r *replica) remove(tb testing.TB, name string) {
	tb.Helper()
	if err := r.Delete(istio.ServiceEntry, name, "ns", nil); err != nil {
		tb.Fatal(err)
	}
}

// eventually waits for a condition that depends on the network.
func eventually(tb testing.TB, what string, condition func() bool) {
	tb.Helper()
	ctx := within(tb)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !condition() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			tb.Fatalf("not after %v: %s", patience, what)
		}
	}
}

// proxy is a connection to a server that can be cut.
type proxy struct {
	listener net.Listener
	delay    atomic.Duration // of every 32 KiB
	target   string
	working  sync.WaitGroup

	mu     sync.Mutex
	conns  map[net.Conn]bool
	state  proxyState
	moved  chan struct{} // is closed when state changes
	closed bool
}

type proxyState int

const (
	passing proxyState = iota
	refusing
	silent // takes everything and passes on nothing
)

func newProxy(tb testing.TB, target string) *proxy {
	tb.Helper()
	listener, err := (&net.ListenConfig{}).Listen(tb.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	p := &proxy{listener: listener, target: target, conns: map[net.Conn]bool{}, moved: make(chan struct{})}
	p.working.Go(p.accept)
	tb.Cleanup(p.close)
	return p
}

func (p *proxy) addr() string { return p.listener.Addr().String() }

func (p *proxy) close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	_ = p.listener.Close()
	p.set(refusing)
	p.working.Wait()
}

// set changes the state. A proxy that refuses connections also drops its present ones.
func (p *proxy) set(state proxyState) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.state = state
	close(p.moved)
	p.moved = make(chan struct{})
	if state == refusing {
		for conn := range p.conns {
			_ = conn.Close()
		}
	}
}

func (p *proxy) accept() {
	for {
		conn, err := p.listener.Accept()
		if err != nil {
			return
		}
		far, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", p.target)
		if err != nil || !p.add(conn, far) {
			_ = conn.Close()
			if far != nil {
				_ = far.Close()
			}
			continue
		}
		p.working.Go(func() { p.forward(conn, far) })
		p.working.Go(func() { p.forward(far, conn) })
	}
}

func (p *proxy) add(conns ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state == refusing || p.closed {
		return false
	}
	for _, c := range conns {
		p.conns[c] = true
	}
	return true
}

// forward copies the data from one side to the other while the proxy passes.
func (p *proxy) forward(from, to net.Conn) {
	defer func() {
		_, _ = from.Close(), to.Close()
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.conns, from)
	}()
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		for p.isSilent() {
		}
		p.late()
		if _, err := io.Writer(to).Write(buf[:n]); err != nil {
			return
		}
	}
}

// late waits as long as a slow network does, or until the state changes.
func (p *proxy) late() {
	p.mu.Lock()
	moved := p.moved
	p.mu.Unlock()
	delay := time.NewTimer(p.delay.Load())
	defer delay.Stop()
	select {
	case <-delay.C:
	case <-moved:
	}
}

// isSilent reports whether the proxy passes nothing on. If so, it returns when the state changes.
func (p *proxy) isSilent() bool {
	p.mu.Lock()
	state, moved := p.state, p.moved
	p.mu.Unlock()
	if state != silent {
		return false
	}
	<-moved
	return true
}
