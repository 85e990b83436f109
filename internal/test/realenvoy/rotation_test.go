// SPDX-License-Identifier: Apache-2.0

package realenvoy

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/http"
	"strconv"
	"testing"

	"github.com/pilotkit/pilotkit/internal/test/envoyproxy"
)

const secureObjects = edgeServers + `
  - port: {number: SECURE, name: https, protocol: HTTPS}
    bind: 127.0.0.1
    hosts: [shop.example.com]
    tls: {mode: SIMPLE, credentialName: edge}
---` + shopRoutes + `[{directResponse: {status: 200}}]
`

// TestRotation: a certificate is replaced under load. Each new connection has the old
// or the new one, soon the new one, and none fails.
func TestRotation(t *testing.T) {
	eachProtocol(t, func(t *testing.T, delta bool) {
		t.Helper()
		p := startPlane(t, planeOptions{mesh: withoutMeshTLS()})
		port := strconv.Itoa(int(envoyproxy.FreePorts(t, 1)[0]))
		issuer := newAuthority(t)
		p.vault.set("ingress", "kubernetes://edge", issuer.secret("shop.example.com"))
		p.Apply(secureObjects, "SECURE", port)
		p.Applied()
		proxy := p.edge(delta)
		proxy.AwaitReady()
		load := startLoad(t, 3, func(*http.Transport) (string, error) {
			return secureCall(t, port, issuer)
		})
		load.more(20)
		for range 10 {
			next := issuer.secret("shop.example.com")
			p.vault.set("ingress", "kubernetes://edge", next)
			load.await(serialOf(t, next.Certificate))
		}
		load.end()
		p.Accepted()
		if n := proxy.Stats(`^listener_manager\.listener_(modified|removed)$`); len(n) > 0 {
			t.Errorf("listeners were changed: %v", n)
		}
	})
}

// secureCall makes a request on a connection of its own, and returns the serial number of
// the certificate that it saw.
func secureCall(t *testing.T, port string, issuer *authority) (serial string, err error) {
	t.Helper()
	transport := &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{RootCAs: issuer.Pool(), ServerName: "shop.example.com", MinVersion: tls.VersionTLS12},
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+local(port)+"/", http.NoBody)
	if err != nil {
		return "", err
	}
	req.Host = "shop.example.com"
	res, err := transport.RoundTrip(req)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return "", fmt.Errorf("status %d", res.StatusCode)
	}
	return res.TLS.PeerCertificates[0].SerialNumber.String(), nil
}

func serialOf(t *testing.T, certificate []byte) string {
	t.Helper()
	block, _ := pem.Decode(certificate)
	parsed, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return parsed.SerialNumber.String()
}
