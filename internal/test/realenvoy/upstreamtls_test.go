// SPDX-License-Identifier: Apache-2.0

package realenvoy

import (
	"crypto/tls"
	"testing"

	"go.uber.org/atomic"
)

// TestUpstreamTLS: DestinationRules say how a gateway calls backends by TLS: whom it
// trusts, which names a certificate needs, which certificate it shows, which name it
// asks for.
func TestUpstreamTLS(t *testing.T) {
	eachProtocol(t, func(t *testing.T, delta bool) {
		t.Helper()
		issuer, other := newAuthority(t), newAuthority(t)
		var asked atomic.String
		server := func(name string, auth tls.ClientAuthType) *reporter {
			return startTLSReporter(t, name, &tls.Config{
				Certificates: []tls.Certificate{issuer.pair(t, "shop.local.test", "spiffe://cluster.local/ns/shop/sa/shop")},
				ClientAuth:   auth, ClientCAs: issuer.Pool(), MinVersion: tls.VersionTLS12,
				GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
					asked.Store(hello.ServerName)
					return nil, nil //nolint:nilnil // The configuration stays.
				},
			})
		}
		one, two := server("one", tls.NoClientCert), server("two", tls.RequireAndVerifyClientCert)
		e := startEdge(t, delta, service("shop", "HTTP", one.endpoint(""), two.endpoint(""))+"---"+rules(`
  - {match: [{uri: {prefix: /one}}], route: [{destination: {host: shop.local.test, subset: one}}]}
  - {match: [{uri: {prefix: /two}}], route: [{destination: {host: shop.local.test, subset: two}}]}
`)+"---"+policy("shop", oneAndTwo))
		e.vault.set("ingress", "kubernetes://good", issuer.secret("gateway.example.com"))
		e.vault.set("ingress", "kubernetes://bad", other.secret("gateway.example.com"))
		for _, c := range []struct{ name, tls, one, two string }{
			{"no TLS", "mode: DISABLE", "400", "400"},
			{"a certificate where it is asked for", "mode: MUTUAL, credentialName: good, sni: asked.test", "one", "two"},
			{"no certificate", "mode: SIMPLE, credentialName: good, sni: asked.test", "one", "503"},
			{"a name that there is", "mode: MUTUAL, credentialName: good, sni: asked.test, subjectAltNames: [shop.local.test]", "one", "two"},
			{"an identity that there is", "mode: MUTUAL, credentialName: good, sni: asked.test, subjectAltNames: [x.test, 'spiffe://cluster.local/ns/shop/sa/shop']", "one", "two"},
			{"a name that there is not", "mode: MUTUAL, credentialName: good, sni: asked.test, subjectAltNames: [other.test]", "503", "503"},
			{"another authority", "mode: MUTUAL, credentialName: bad, sni: asked.test", "503", "503"},
			{"no authority", "mode: SIMPLE, insecureSkipVerify: true, sni: asked.test", "one", "503"},
		} {
			asked.Store("")
			e.Apply(policy("shop", "  trafficPolicy: {tls: {"+c.tls+"}}\n"+oneAndTwo))
			e.Applied()
			if one, two := e.who("/one"), e.who("/two"); one != c.one || two != c.two {
				t.Errorf("%s: %s and %s, want %s and %s", c.name, one, two, c.one, c.two)
			}
			if got := asked.Load(); c.one != "400" && got != "asked.test" {
				t.Errorf("%s: the server was asked for %q", c.name, got)
			}
		}
		e.fine()
	})
}
