// SPDX-License-Identifier: Apache-2.0

package realclients

import (
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"testing"

	"google.golang.org/grpc"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/internal/test/authority"
	"github.com/pilotkit/pilotkit/internal/test/testplane"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/authn"
)

// identities are the certificates of a control plane and of its clients.
type identities struct {
	t       *testing.T
	clients *authn.Authenticator
	tls     *authn.TLS
	// server and client are the directories of their files.
	server, client string
}

// clientOf is the SPIFFE ID of a client in a namespace.
func clientOf(namespace string) string {
	return "spiffe://example.org/ns/" + namespace + "/sa/client"
}

// newIdentities issues certificates for a control plane, and for a client in a namespace.
func newIdentities(t *testing.T, issuer *authority.Authority, namespace string) *identities {
	t.Helper()
	i := &identities{t: t, server: t.TempDir(), client: t.TempDir(), clients: authn.New(authn.Options{TrustDomains: []string{"example.org"}})}
	i.write(i.server, issuer, "localhost", issuer)
	i.write(i.client, issuer, clientOf(namespace), issuer)
	var err error
	i.tls, err = authn.NewTLS(authn.TLSOptions{Interval: -1, Files: authn.Files{
		Certificate: filepath.Join(i.server, "tls.crt"), Key: filepath.Join(i.server, "tls.key"), Authorities: filepath.Join(i.server, "ca.crt"),
	}})
	if err != nil {
		t.Fatal(err)
	}
	return i
}

// write writes a certificate for a name, and trusts some authorities. Each file is replaced
// in one step, one after the other: readers may see a certificate with the key of another.
func (i *identities) write(dir string, issuer *authority.Authority, name string, trusted ...*authority.Authority) {
	i.t.Helper()
	certificate, key := issuer.Issue(name)
	var authorities []byte
	for _, a := range trusted {
		authorities = append(authorities, a.PEM()...)
	}
	for file, data := range map[string][]byte{"tls.crt": certificate, "tls.key": key, "ca.crt": authorities} {
		path := filepath.Join(dir, file)
		if err := os.WriteFile(path+".new", data, 0o600); err != nil {
			i.t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			i.t.Fatal(err)
		}
	}
}

func (i *identities) reload() {
	i.t.Helper()
	if err := i.tls.Reload(); err != nil {
		i.t.Fatal(err)
	}
}

// plane starts a control plane that knows its clients.
func (i *identities) plane(address string, configs ...configstore.Config) *plane {
	i.t.Helper()
	return startPlaneWith(i.t, testplane.Options{
		Address: address, GRPC: append(ads.ServerOptions(), grpc.Creds(i.tls.Credentials())),
		Server: func(*testplane.Plane) ads.Options { return ads.Options{Proxy: i.clients.Proxy} },
	}, configs...)
}

// call starts grpc-go's client, which claims the namespace apps, and calls the target.
func (i *identities) call(p *plane) *caller {
	i.t.Helper()
	_, port, err := net.SplitHostPort(p.Address)
	if err != nil {
		i.t.Fatal(err)
	}
	var content map[string]any
	if err := json.Unmarshal(bootstrap(i.t, net.JoinHostPort("localhost", port)), &content); err != nil {
		i.t.Fatal(err)
	}
	content["xds_servers"].([]any)[0].(map[string]any)["channel_creds"] = []any{map[string]any{"type": "tls", "config": map[string]any{
		"certificate_file": filepath.Join(i.client, "tls.crt"), "private_key_file": filepath.Join(i.client, "tls.key"),
		"ca_certificate_file": filepath.Join(i.client, "ca.crt"), "refresh_interval": "0.05s",
	}}}
	text, err := json.Marshal(content)
	if err != nil {
		i.t.Fatal(err)
	}
	feed, send := startGo(i.t, text, target)
	return newCaller(i.t, feed, send)
}

// forApps lets only the namespace apps see a service.
func forApps(spec *networking.ServiceEntry) { spec.ExportTo = []string{"apps"} }

// TestTLS: grpc-go's client reaches its control plane by mutual TLS, and gets what its
// namespace may see. Both rotate their certificates, to another authority, while it calls,
// and no call fails.
func TestTLS(t *testing.T) {
	t.Parallel()
	old, next := authority.New(t), authority.New(t)
	i := newIdentities(t, old, "apps")
	one, two := startBackend(t, "one"), startBackend(t, "two")
	p := i.plane("", edited(forApps, one.entry()))
	c := i.call(p)
	c.follow("one")

	// The client first, and the server, which takes both meanwhile.
	i.write(i.server, old, "localhost", old, next)
	i.reload()
	i.write(i.client, next, clientOf("apps"), old, next)
	p.Update(edited(forApps, two.entry()))
	c.follow("two")

	// Then the server, which knows the new authority alone.
	i.write(i.server, next, "localhost", next)
	i.reload()
	p.Stop()
	p = i.plane(p.Address, edited(forApps, one.entry()))
	c.follow("one")
	p.Applied()
	p.Accepted()
	for cause, n := range i.clients.Refusals() {
		if n > 0 {
			t.Errorf("%d refusals: %s", n, cause)
		}
	}
}

// TestImpostor: a client that claims another namespace than its certificate's gets nothing.
func TestImpostor(t *testing.T) {
	t.Parallel()
	i := newIdentities(t, authority.New(t), "evil")
	p := i.plane("", edited(forApps, startBackend(t, "one").entry()))
	c := i.call(p)
	c.counts = true
	c.fails()
	p.poll("refusals", func() bool { return i.clients.Refusals()[authn.CauseNamespace] >= 2 })
	c.fails()
	if n := len(p.Server.Proxies()); n > 0 {
		t.Errorf("%d clients are served", n)
	}
}
