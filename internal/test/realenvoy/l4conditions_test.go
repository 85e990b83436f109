// SPDX-License-Identifier: Apache-2.0

package realenvoy

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/pilotkit/pilotkit/internal/test/envoyproxy"
)

// conditions are TCP and TLS routes for some connections, on all addresses.
const conditions = edgeServers + `
  - {port: {number: RAW, name: tcp, protocol: TCP}, hosts: ["*"]}
  - {port: {number: SECURE, name: tls, protocol: TLS}, hosts: ["*.example.com"], tls: {mode: PASSTHROUGH}}
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: tcp, namespace: ingress}
spec:
  hosts: ["*"]
  gateways: [edge]
  tcp:
  - match: [{sourceSubnet: 127.0.0.2}]
    route: [{destination: {host: one.local.test}}]
  - match: [{destinationSubnets: [127.0.0.4/32], sourceSubnet: 127.0.0.0/30}]
    route: [{destination: {host: two.local.test}}]
  - match: [{sourceLabels: {app: web}}]
    route: [{destination: {host: one.local.test}}]
  - match: [{sourceSubnet: 127.0.0.3}, {sourceSubnet: 127.0.0.5}]
    route: [{destination: {host: three.local.test}}]
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: tls, namespace: ingress}
spec:
  hosts: ["*.example.com"]
  gateways: [edge]
  tls:
  - match: [{sniHosts: [a.example.com], destinationSubnets: [127.0.0.4]}]
    route: [{destination: {host: a.local.test}}]
  - match: [{sniHosts: [b.example.com]}]
    route: [{destination: {host: b.local.test}}]
`

// TestL4Conditions: connections go where the first route leads that is for where they
// come from and go to, and are closed if there is none.
func TestL4Conditions(t *testing.T) {
	if l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.2:0"); err != nil {
		t.Skipf("only 127.0.0.1 is an address of this machine: %v", err)
	} else if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	eachProtocol(t, func(t *testing.T, delta bool) {
		t.Helper()
		ports := envoyproxy.FreePorts(t, 2)
		raw, secure := strconv.Itoa(int(ports[0])), strconv.Itoa(int(ports[1]))
		p := startPlane(t, planeOptions{mesh: withoutMeshTLS()})
		issuer := newAuthority(t)
		for _, name := range []string{"one", "two", "three"} {
			p.Apply(serviceEntry(name+".local.test", "TCP", startBackend(t, name)))
		}
		for _, name := range []string{"a", "b"} {
			config := &tls.Config{Certificates: []tls.Certificate{issuer.pair(t, name+".backend.test")}, MinVersion: tls.VersionTLS12}
			p.Apply(service(name, "TLS", startTLSReporter(t, name, config).endpoint("")))
		}
		p.Apply(conditions, "RAW", raw, "SECURE", secure)
		p.Applied()
		proxy := p.edge(delta)
		proxy.AwaitReady()
		p.Applied()
		for _, tc := range []struct{ from, to, want string }{
			{"127.0.0.2", "127.0.0.1", "one /"},
			{"127.0.0.2", "127.0.0.4", "one /"},
			{"127.0.0.3", "127.0.0.4", "two /"},
			{"127.0.0.3", "127.0.0.1", "three /"},
			{"127.0.0.5", "127.0.0.4", "three /"},
			{"127.0.0.5", "127.0.0.1", "three /"},
			{"127.0.0.6", "127.0.0.1", ""},
			{"127.0.0.6", "127.0.0.4", ""},
			{"127.0.0.1", "127.0.0.1", ""},
		} {
			if got := answerTo(t, tc.from, net.JoinHostPort(tc.to, raw)); got != tc.want {
				t.Errorf("TCP from %s to %s: %q, want %q", tc.from, tc.to, got, tc.want)
			}
		}
		for _, tc := range []struct{ name, to, want string }{
			{"a.example.com", "127.0.0.4", "a.backend.test"},
			{"a.example.com", "127.0.0.1", ""},
			{"b.example.com", "127.0.0.4", "b.backend.test"},
			{"b.example.com", "127.0.0.1", "b.backend.test"},
		} {
			if got := subjectAt(t, net.JoinHostPort(tc.to, secure), tc.name); got != tc.want {
				t.Errorf("TLS to %s at %s: %q, want %q", tc.name, tc.to, got, tc.want)
			}
		}
		p.Accepted()
		if refused := proxy.Refused(); len(refused) > 0 {
			t.Errorf("refused: %v", refused)
		}
	})
}

// answerTo returns the response to a client with an address, or "" if its connection is closed.
func answerTo(t *testing.T, from, to string) string {
	t.Helper()
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	transport := &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			return dialer.DialContext(ctx, network, address)
		},
	}
	defer transport.CloseIdleConnections()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+to+"/", nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := transport.RoundTrip(req)
	if err != nil {
		if !closed(err) {
			t.Errorf("from %s to %s: %v", from, to, err)
		}
		return ""
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		t.Error(err)
	}
	return string(data)
}

// closed reports whether an error says that the other side has closed a connection.
func closed(err error) bool {
	text := err.Error()
	return errors.Is(err, io.EOF) || strings.Contains(text, "reset") || strings.Contains(text, "broken pipe") ||
		strings.Contains(text, "closed idle connection") // before the request was written
}
