// SPDX-License-Identifier: Apache-2.0

package envoyproxy

import (
	"math/rand/v2"
	"net"
	"strconv"
	"testing"
)

// FreePorts returns ports of the loopback interface that are free. They are below
// those that systems give to connections, and to listeners that name none, so that
// nobody takes them before the proxy does.
func FreePorts(tb testing.TB, n int) []uint32 {
	tb.Helper()
	var ports []uint32
	for try := 0; len(ports) < n; try++ {
		port := uint32(10_000 + rand.IntN(10_000))
		l, err := (&net.ListenConfig{}).Listen(tb.Context(), "tcp", joinAddress("127.0.0.1", port))
		if err == nil {
			defer l.Close() // at the end, so that no port is found twice
			ports = append(ports, port)
		} else if try == 100 {
			tb.Fatal(err)
		}
	}
	return ports
}

func joinAddress(host string, port uint32) string {
	return net.JoinHostPort(host, strconv.Itoa(int(port)))
}
