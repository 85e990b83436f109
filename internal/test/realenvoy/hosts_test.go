// SPDX-License-Identifier: Apache-2.0

package realenvoy

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"testing"

	"github.com/pilotkit/pilotkit/internal/test/envoyproxy"
)

// TestHostsOfRequests: a gateway finds a host also by its name with a dot at the end, and
// serves HTTP/1.0 if it is told to.
func TestHostsOfRequests(t *testing.T) {
	eachProtocol(t, func(t *testing.T, delta bool) {
		t.Helper()
		for _, http10 := range []bool{false, true} {
			p := startPlane(t, planeOptions{mesh: withoutMeshTLS(), http10: http10})
			port := strconv.Itoa(int(envoyproxy.FreePorts(t, 1)[0]))
			p.Apply(shopGateway+"[{directResponse: {status: 200}}]", "HTTPPORT", port)
			p.Applied()
			p.edge(delta).AwaitReady()
			old := map[bool]int{false: http.StatusUpgradeRequired, true: http.StatusOK}[http10]
			for request, want := range map[string]int{
				"GET / HTTP/1.1\r\nHost: shop.example.com\r\n\r\n":       http.StatusOK,
				"GET / HTTP/1.1\r\nHost: shop.example.com.\r\n\r\n":      http.StatusOK,
				"GET / HTTP/1.1\r\nHost: SHOP.example.com.:8080\r\n\r\n": http.StatusOK,
				"GET / HTTP/1.1\r\nHost: other.example.com.\r\n\r\n":     http.StatusNotFound,
				"GET / HTTP/1.0\r\nHost: shop.example.com\r\n\r\n":       old,
			} {
				if got := speak(t, port, request); got != want {
					t.Errorf("HTTP/1.0 %t: %q: %d, want %d", http10, request, got, want)
				}
			}
			p.Accepted()
		}
	})
}

// speak sends a request as it is written, and returns the status of the answer.
func speak(t *testing.T, port, request string) int {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", local(port))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := fmt.Fprint(conn, request); err != nil {
		t.Fatal(err)
	}
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatalf("%q: %v", request, err)
	}
	defer res.Body.Close()
	return res.StatusCode
}
