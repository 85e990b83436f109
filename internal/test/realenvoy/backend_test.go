// SPDX-License-Identifier: Apache-2.0

package realenvoy

import (
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"

	"github.com/pilotkit/pilotkit/internal/test/testserver"
)

// backend is an HTTP server that answers with its name and the path.
type backend struct {
	*httptest.Server
	name string
}

func startBackend(t *testing.T, name string) *backend {
	t.Helper()
	b := &backend{name: name}
	b.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprintf(w, "%s %s", name, r.URL.Path)
	}))
	t.Cleanup(b.Close)
	return b
}

// port is the number of the backend's port.
func (b *backend) port() string { return portOf(b.Listener) }

func portOf(l net.Listener) string { return strconv.Itoa(l.Addr().(*net.TCPAddr).Port) }

// startEcho is a TCP server that echoes its input.
func startEcho(t *testing.T) (port string) {
	t.Helper()
	l := testserver.Listen(t, "127.0.0.1:0")
	var running sync.WaitGroup
	running.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			running.Go(func() {
				defer conn.Close()
				_, _ = io.Copy(conn, conn)
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		running.Wait()
	})
	return portOf(l)
}

// newVersionBackend returns one, not yet started, that answers with its name and the
// version of HTTP.
func newVersionBackend(name string) *httptest.Server {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, name+" "+r.Proto)
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // Handshakes may fail until there are certificates.
	return server
}
