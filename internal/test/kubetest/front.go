// SPDX-License-Identifier: Apache-2.0

package kubetest

import (
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"go.uber.org/atomic"
)

// Front is a TCP proxy in front of a server. Its address stays while the server
// behind it stops and starts. The zero state forwards everything.
type Front struct {
	server   *Server
	listener net.Listener
	workers  sync.WaitGroup

	mu sync.Mutex
	// resumed is closed while connections are not paused.
	resumed chan struct{}
	refuse  bool
	swallow bool
	delay   time.Duration
	conns   map[net.Conn]struct{}
	closed  bool
}

// Front returns a new proxy in front of the server, for a test that disturbs the
// connection. It ends with the test.
func (s *Server) Front(tb testing.TB) *Front {
	tb.Helper()
	f, err := newFront(s)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(f.close)
	return f
}

func newFront(s *Server) (*Front, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // Nothing waits here.
	if err != nil {
		return nil, err
	}
	f := &Front{server: s, listener: listener, resumed: make(chan struct{}), conns: map[net.Conn]struct{}{}}
	close(f.resumed)
	f.workers.Go(f.accept)
	return f, nil
}

// Config returns the configuration of an administrator's client that goes through
// the proxy.
func (f *Front) Config() Config {
	return Config{Host: "https://" + f.listener.Addr().String(), Token: adminToken}
}

// Cut closes all connections. Clients may connect again.
func (f *Front) Cut() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for conn := range f.conns {
		conn.Close()
	}
}

// Refuse cuts all connections and closes each new one, until it is called with
// false.
func (f *Front) Refuse(refuse bool) {
	f.mu.Lock()
	f.refuse = refuse
	f.mu.Unlock()
	if refuse {
		f.Cut()
	}
}

// Delay makes everything that the server sends arrive that much later; the
// sender waits meanwhile.
func (f *Front) Delay(d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.delay = d
}

// Swallow makes what either side sends vanish, until it is called with false. The
// connections stay, but one that has lost anything is dead for good.
func (f *Front) Swallow(swallow bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.swallow = swallow
}

// Hold holds up everything that the server sends, until it is called with false:
// connections stay, and nothing arrives.
func (f *Front) Hold(hold bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	held := true
	select {
	case <-f.resumed:
		held = false
	default:
	}
	switch {
	case hold && !held:
		f.resumed = make(chan struct{})
	case !hold && held:
		close(f.resumed)
	}
}

func (f *Front) close() {
	f.mu.Lock()
	f.closed = true
	f.mu.Unlock()
	f.Hold(false)
	f.listener.Close()
	f.Cut()
	f.workers.Wait()
}

func (f *Front) accept() {
	for {
		client, err := f.listener.Accept()
		if err != nil {
			return
		}
		f.workers.Go(func() { f.serve(client) })
	}
}

func (f *Front) serve(client net.Conn) {
	defer client.Close()
	if !f.keep(client) {
		return
	}
	defer f.drop(client)
	server, err := net.Dial("tcp", f.server.address()) //nolint:noctx // The loopback interface answers at once.
	if err != nil {
		return
	}
	defer server.Close()
	if !f.keep(server) {
		return
	}
	defer f.drop(server)
	var up sync.WaitGroup
	var dead atomic.Bool
	up.Go(func() {
		_, _ = io.Copy(lossy{f, server, &dead}, client)
		server.Close()
	})
	f.forward(lossy{f, client, &dead}, server)
	client.Close()
	up.Wait()
}

// lossy is a side of a connection, which is dead when anything was lost.
type lossy struct {
	front *Front
	net.Conn
	dead *atomic.Bool
}

func (l lossy) Write(p []byte) (int, error) {
	l.front.mu.Lock()
	swallow := l.front.swallow
	l.front.mu.Unlock()
	if swallow {
		l.dead.Store(true)
	}
	if l.dead.Load() {
		return len(p), nil
	}
	return l.Conn.Write(p)
}

func (f *Front) keep(conn net.Conn) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.refuse || f.closed {
		return false
	}
	f.conns[conn] = struct{}{}
	return true
}

func (f *Front) drop(conn net.Conn) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.conns, conn)
}

// forward copies the data of the server, at the configured speed.
func (f *Front) forward(client io.Writer, server net.Conn) {
	buffer := make([]byte, 64<<10)
	for {
		n, err := server.Read(buffer)
		if n > 0 {
			f.wait()
			if _, err := client.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

func (f *Front) wait() {
	f.mu.Lock()
	resumed, delay := f.resumed, f.delay
	f.mu.Unlock()
	<-resumed
	if delay > 0 {
		<-time.NewTimer(delay).C
	}
}
