// SPDX-License-Identifier: Apache-2.0

package pace

import (
	"context"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/peer"
)

// TestAllowances: streams of one connection share its allowance, also one after the other; streams
// of unknown connections have one each; the allowance of a closed connection is dropped when it is
// full again.
func TestAllowances(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var all Allowances
		from := func(addr net.Addr) context.Context {
			return peer.NewContext(context.Background(), &peer.Peer{Addr: addr})
		}
		one, other := &net.TCPAddr{Port: 1}, &net.TCPAddr{Port: 1}
		first, done := all.Open(from(one))
		if !all.Allows(first, WorkAtOnce) || all.Allows(first, 1) {
			t.Error("a connection may not do workAtOnce at once, and no more")
		}
		done()
		if second, done := all.Open(from(one)); second != first || all.Allows(second, 1) {
			t.Error("another stream of the connection has another allowance")
		} else {
			done()
		}
		for what, ctx := range map[string]context.Context{
			"another connection": from(other), "no peer": context.Background(), "no address": from(nil),
			"an address that all connections have": from(plainAddr("pipe")),
		} {
			if of, _ := all.Open(ctx); of == first || !all.Allows(of, WorkAtOnce) {
				t.Errorf("%s: the allowance is that of the first connection", what)
			}
		}
		time.Sleep(time.Second)
		if !all.Allows(first, WorkPerSecond) || all.Allows(first, 1) {
			t.Error("a connection may not do workPerSecond in a second, and no more")
		}
		for i := range 10_000 {
			_, done := all.Open(from(&net.TCPAddr{Port: i}))
			done()
		}
		if n := len(all.of); n > 200 {
			t.Errorf("the allowances of %d connections are kept", n)
		}
	})
}

type plainAddr string

func (plainAddr) Network() string  { return "pipe" }
func (a plainAddr) String() string { return string(a) }
