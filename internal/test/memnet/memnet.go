// SPDX-License-Identifier: Apache-2.0

// Package memnet is a network in memory for tests, those in bubbles of testing/synctest
// too: nothing in it blocks on anything outside the process, and no connection has a
// timer until somebody sets a deadline.
//
// That is why tests use it and not google.golang.org/grpc/test/bufconn: with each
// connection that makes timers that are due at once, which the race detector of Go 1.26
// does not survive when two goroutines of one bubble do it at the same time.
package memnet

import (
	"context"
	"net"
	"sync"
)

// Listener accepts the connections that its Dial makes. It is safe for concurrent use.
type Listener struct {
	accept chan net.Conn
	closed chan struct{}
	close  sync.Once
}

// Listen returns a new listener, which the caller closes.
func Listen() *Listener {
	return &Listener{accept: make(chan net.Conn), closed: make(chan struct{})}
}

// Dial returns the client's end of a new connection when the server has accepted the other end. It
// fails with net.ErrClosed once the listener is closed, and with the cause of the context's end.
// Connections are unbuffered: a write returns when it has been read.
func (l *Listener) Dial(ctx context.Context) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case l.accept <- server:
		return client, nil
	case <-l.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Accept waits for the next connection. It fails with net.ErrClosed once the listener is
// closed.
func (l *Listener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.accept:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close ends Accept and Dial, now and later; connections stay open. It never fails, and
// may be called again.
func (l *Listener) Close() error {
	l.close.Do(func() { close(l.closed) })
	return nil
}

// Addr returns an address that says only that the network is in memory.
func (l *Listener) Addr() net.Addr { return addr{} }

type addr struct{}

// Network implements net.Addr, as String does.
func (addr) Network() string { return "memory" }

func (addr) String() string { return "memory" }
