// SPDX-License-Identifier: Apache-2.0

package realenvoy

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"testing"

	"github.com/pilotkit/pilotkit/internal/test/testserver"
)

// target is a workload that answers with its name, on ports for HTTP of both versions
// ("p"), for lines of TCP ("tcp"), and for HTTP by TLS ("tls").
type target struct {
	name  string
	ports map[string]string
}

func startTarget(t *testing.T, name string, certificate tls.Certificate) *target {
	t.Helper()
	w := &target{name: name, ports: make(map[string]string)}
	w.serve(t, "p", nil)
	w.serve(t, "tls", &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12})
	w.serveLines(t)
	return w
}

// listen opens a port until the test ends, and serves it until then.
func (w *target) listen(t *testing.T, port string, serve func(net.Listener), closing func()) {
	t.Helper()
	l := testserver.Listen(t, "127.0.0.1:0")
	w.ports[port] = portOf(l)
	var running sync.WaitGroup
	running.Go(func() { serve(l) })
	t.Cleanup(func() {
		_ = l.Close()
		closing()
		running.Wait()
	})
}

func (w *target) serve(t *testing.T, port string, config *tls.Config) {
	t.Helper()
	server := &http.Server{ //nolint:gosec // The clients are those of the test.
		TLSConfig: config, Protocols: new(http.Protocols), ErrorLog: log.New(io.Discard, "", 0),
		Handler: http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(rw, w.name) }),
	}
	server.Protocols.SetHTTP1(true)
	server.Protocols.SetUnencryptedHTTP2(config == nil)
	w.listen(t, port, func(l net.Listener) {
		if config != nil {
			l = tls.NewListener(l, config)
		}
		_ = server.Serve(l) // until it is closed
	}, func() { _ = server.Close() })
}

// serveLines answers each line with one.
func (w *target) serveLines(t *testing.T) {
	t.Helper()
	var mu sync.Mutex
	open := make(map[net.Conn]bool)
	var running sync.WaitGroup
	answer := func(conn net.Conn) {
		defer conn.Close()
		for lines := bufio.NewScanner(conn); lines.Scan(); {
			if _, err := fmt.Fprintln(conn, w.name); err != nil {
				return
			}
		}
	}
	w.listen(t, "tcp", func(l net.Listener) {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			open[conn] = true
			mu.Unlock()
			running.Go(func() {
				answer(conn)
				mu.Lock()
				delete(open, conn)
				mu.Unlock()
			})
		}
	}, func() {
		mu.Lock()
		for conn := range open {
			_ = conn.Close()
		}
		mu.Unlock()
		running.Wait()
	})
}

// entry is the target as a WorkloadEntry with a name, in a namespace. Services select it
// by the label backend.
func (w *target) entry(namespace, name string) string {
	return fmt.Sprintf(`---
apiVersion: networking.istio.io/v1
kind: WorkloadEntry
metadata: {name: %s, namespace: %s}
spec: {address: 127.0.0.1, ports: {p: %s, tcp: %s, tls: %s}, labels: {app: shop, backend: %s}}
`, name, namespace, w.ports["p"], w.ports["tcp"], w.ports["tls"], w.name)
}
