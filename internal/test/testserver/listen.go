// SPDX-License-Identifier: Apache-2.0

package testserver

import (
	"math/rand/v2"
	"net"
	"strconv"
	"testing"
)

// Listen listens on an address. "" is a port of 127.0.0.1 as FreePorts finds it, so that no
// connection occupies it when another server takes the place of one that listened there.
func Listen(tb testing.TB, address string) net.Listener {
	tb.Helper()
	if address == "" {
		return listenFree(tb, "127.0.0.1")
	}
	l, err := new(net.ListenConfig).Listen(tb.Context(), "tcp", address)
	if err != nil {
		tb.Fatal(err)
	}
	return l
}

// Port returns the port that is listened on.
func Port(l net.Listener) uint32 {
	return uint32(l.Addr().(*net.TCPAddr).Port) //nolint:gosec // a port
}

// FreePorts returns free ports of an IP of the loopback interface. They are below the ports that
// the system assigns to connections and to listeners without a port, so that they stay free until
// the server listens.
func FreePorts(tb testing.TB, ip string, n int) []uint32 {
	tb.Helper()
	var ports []uint32
	for range n {
		l := listenFree(tb, ip)
		defer l.Close() // at the end, so that no port is found twice
		ports = append(ports, Port(l))
	}
	return ports
}

func listenFree(tb testing.TB, ip string) net.Listener {
	tb.Helper()
	for try := 0; ; try++ {
		l, err := new(net.ListenConfig).Listen(tb.Context(), "tcp", net.JoinHostPort(ip, strconv.Itoa(10_000+rand.IntN(20_000))))
		if err == nil {
			return l
		}
		if try == 100 {
			tb.Fatal(err)
		}
	}
}
