// SPDX-License-Identifier: Apache-2.0

package envoyproxy

import (
	"net"
	"strconv"
	"testing"

	"github.com/pilotkit/pilotkit/internal/test/testserver"
)

// FreePorts returns ports of 127.0.0.1 that are free, and that nobody takes before the proxy
// does.
func FreePorts(tb testing.TB, n int) []uint32 {
	tb.Helper()
	return testserver.FreePorts(tb, "127.0.0.1", n)
}

func joinAddress(host string, port uint32) string {
	return net.JoinHostPort(host, strconv.Itoa(int(port)))
}
