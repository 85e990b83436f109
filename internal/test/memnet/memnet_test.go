// SPDX-License-Identifier: Apache-2.0

package memnet_test

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/pilotkit/pilotkit/internal/test/memnet"
)

// TestConnection: one end reads the bytes that the other writes, until it is closed.
func TestConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := memnet.Listen()
		defer func() { _ = l.Close() }()
		go func() {
			conn, err := l.Accept()
			if err != nil {
				t.Error(err)
				return
			}
			if _, err := conn.Write([]byte("hello")); err != nil {
				t.Error(err)
			}
			_ = conn.Close()
		}()
		conn, err := l.Dial(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		if got, err := io.ReadAll(conn); err != nil || string(got) != "hello" {
			t.Errorf("got %q, %v", got, err)
		}
	})
}

// TestClose: Accept and Dial end with the listener, and Dial with its context.
func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := memnet.Listen()
		cause := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(cause)
		if _, err := l.Dial(ctx); !errors.Is(err, cause) {
			t.Errorf("a dial with an ended context: %v", err)
		}
		var running sync.WaitGroup
		running.Go(func() {
			if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
				t.Errorf("accept: %v", err)
			}
		})
		synctest.Wait()
		for range 2 {
			if err := l.Close(); err != nil {
				t.Error(err)
			}
		}
		running.Wait()
		if _, err := l.Dial(t.Context()); !errors.Is(err, net.ErrClosed) {
			t.Errorf("dial: %v", err)
		}
	})
}

// TestManyDialAtOnce: what every user of it does at the same time in a bubble is safe
// under the race detector.
func TestManyDialAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := memnet.Listen()
		var running sync.WaitGroup
		running.Go(func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				_ = conn.Close()
			}
		})
		var dialing sync.WaitGroup
		for range 8 {
			dialing.Go(func() {
				for range 200 {
					conn, err := l.Dial(t.Context())
					if err != nil {
						t.Error(err)
						return
					}
					_ = conn.Close()
				}
			})
		}
		dialing.Wait()
		_ = l.Close()
		running.Wait()
	})
}
