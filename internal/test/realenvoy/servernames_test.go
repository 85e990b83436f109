// SPDX-License-Identifier: Apache-2.0

package realenvoy

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/pilotkit/pilotkit/internal/test/envoyproxy"
)

// chainHosts are the hosts of servers on one port, for random Gateways.
var chainHosts = []string{"a.example.com", "b.example.com", "*.example.com", "*.b.example.com", "x.b.example.com", "c.test", "*.test", "*"}

// TestServerNames: which server of a port a TLS connection gets. Random Gateways have
// servers that terminate TLS for a host each, and servers that pass it on; the most
// specific host decides: the name itself, then the longest wildcard.
func TestServerNames(t *testing.T) {
	eachProtocol(t, func(t *testing.T, delta bool) {
		t.Helper()
		p := startPlane(t, planeOptions{mesh: withoutMeshTLS()})
		r := rand.New(rand.NewPCG(7, 7))
		backend := newAuthority(t)
		passed := startTLSReporter(t, "passed", &tls.Config{Certificates: []tls.Certificate{backend.pair(t, "passed.example.com")}, MinVersion: tls.VersionTLS12})
		p.Apply(service("passed", "TLS", passed.endpoint("")))
		gateways := make(map[string]map[string]string) // what each host is, by port
		for i, port := range envoyproxy.FreePorts(t, 8) {
			gateways[strconv.Itoa(int(port))] = p.randomServers(r, fmt.Sprint("g", i), strconv.Itoa(int(port)), backend)
		}
		p.Applied()
		proxy := p.edge(delta)
		proxy.AwaitReady()
		p.Applied()
		for port, hosts := range gateways {
			for _, name := range []string{"a.example.com", "b.example.com", "x.b.example.com", "y.b.example.com", "A.Example.com", "z.example.com", "c.test", "d.test", "e.c.test", "other.org", ""} {
				if got, want := subjectOf(t, port, name), expectedSubject(hosts, strings.ToLower(name)); got != want {
					t.Errorf("%q among %v: %q, want %q", name, hosts, got, want)
				}
			}
		}
		p.Accepted()
		if refused := proxy.Refused(); len(refused) > 0 {
			t.Errorf("refused: %v", refused)
		}
	})
}

// randomServers makes a Gateway of some hosts on a port, each by a server of its own,
// and returns the subject of the certificate that clients of each host are to see.
func (p *plane) randomServers(r *rand.Rand, name, port string, issuer *authority) map[string]string {
	p.TB.Helper()
	hosts := slices.Clone(chainHosts)
	r.Shuffle(len(hosts), func(i, j int) { hosts[i], hosts[j] = hosts[j], hosts[i] })
	out := make(map[string]string)
	gateway := fmt.Sprintf(`
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: %s, namespace: ingress}
spec:
  selector: {app: edge}
  servers:
`, name)
	var sni []string
	for i, host := range hosts[:2+r.IntN(4)] {
		mode, protocol := "PASSTHROUGH", "TLS"
		out[host] = "passed.example.com"
		if r.IntN(3) > 0 {
			mode, protocol = fmt.Sprintf("SIMPLE, credentialName: %s-%d", name, i), "HTTPS"
			out[host] = fmt.Sprintf("%s-%d.example.com", name, i)
			p.vault.set("ingress", fmt.Sprintf("kubernetes://%s-%d", name, i), issuer.secret(out[host]))
		} else {
			sni = append(sni, host)
		}
		gateway += fmt.Sprintf("  - {port: {number: %s, name: s%d, protocol: %s}, bind: 127.0.0.1, hosts: [%q], tls: {mode: %s}}\n", port, i, protocol, host, mode)
	}
	p.Apply(gateway)
	for i, host := range sni {
		p.Apply(fmt.Sprintf(`
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: %[1]s-%[2]d, namespace: ingress}
spec:
  hosts: [%[3]q]
  gateways: [%[1]s]
  tls: [{match: [{sniHosts: [%[3]q]}], route: [{destination: {host: passed.local.test}}]}]
`, name, i, host))
	}
	return out
}

// expectedSubject is that of the most specific host; "" if there is none.
func expectedSubject(hosts map[string]string, name string) string {
	best := ""
	for host := range hosts {
		suffix, wild := strings.CutPrefix(host, "*")
		if host == name {
			return hosts[host]
		}
		// A connection without a name is for servers of all hosts.
		if wild && (suffix == "" || name != "" && strings.HasSuffix(name, suffix)) && len(host) > len(best) {
			best = host
		}
	}
	return hosts[best]
}

// subjectOf returns the name of the certificate that a client with a server name sees;
// "" if the connection is closed before.
func subjectOf(t *testing.T, port, name string) string {
	t.Helper()
	return subjectAt(t, local(port), name)
}

// subjectAt is subjectOf at an address.
func subjectAt(t *testing.T, address, name string) string {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	client := tls.Client(conn, &tls.Config{ServerName: name, InsecureSkipVerify: true, MinVersion: tls.VersionTLS12}) //nolint:gosec // It is looked at.
	if err := client.HandshakeContext(t.Context()); err != nil {
		if !errors.Is(err, io.EOF) && !strings.Contains(err.Error(), "reset") {
			t.Errorf("%q: %v", name, err)
		}
		return ""
	}
	return client.ConnectionState().PeerCertificates[0].Subject.CommonName
}
