// SPDX-License-Identifier: Apache-2.0

package secrets_test

import (
	"bytes"
	"path/filepath"
	"sync"
	"testing"

	"go.uber.org/atomic"

	"github.com/pilotkit/pilotkit/internal/test/authority"
	"github.com/pilotkit/pilotkit/xdsupdate/secrets"
)

// TestAuthoritiesOnly: a secret without a key is its authorities, under its own name.
func TestAuthoritiesOnly(t *testing.T) {
	secret := &secrets.Secret{Authorities: issue(t, "x").Authorities}
	p := serve(t, secrets.Options{Names: []string{"own"}, Function: func(secrets.Name) (*secrets.Secret, error) { return secret, nil }})
	c := p.client("ingress")
	p.subscribe(c, "own")
	if got := held(t, c)["own"].GetValidationContext().GetTrustedCa().GetInlineBytes(); !bytes.Equal(got, secret.Authorities) {
		t.Errorf("a proxy has %q", got)
	}
}

// TestRevocations: authorities go with their revocation lists, from files and from the function, and a
// changed list is served.
func TestRevocations(t *testing.T) {
	ca := authority.New(t)
	dir := t.TempDir()
	files := secrets.Files{Authorities: filepath.Join(dir, "ca.crt"), Revocations: filepath.Join(dir, "ca.crl")}
	secret := &secrets.Secret{Authorities: ca.PEM(), Revocations: ca.RevocationList()}
	writeFile(t, files.Authorities, secret.Authorities)
	writeFile(t, files.Revocations, secret.Revocations)
	var current atomic.Pointer[secrets.Secret]
	current.Store(secret)
	p := serve(t, secrets.Options{
		Names: []string{"own"}, Files: map[secrets.Name]secrets.Files{{Name: "files"}: files},
		Function: func(secrets.Name) (*secrets.Secret, error) { return current.Load(), nil },
	})
	c := p.client("ingress")
	p.subscribe(c, "own", "files")
	revocations := func(name string) []byte { return held(t, c)[name].GetValidationContext().GetCrl().GetInlineBytes() }
	for _, name := range []string{"own", "files"} {
		if got := revocations(name); !bytes.Equal(got, secret.Revocations) {
			t.Errorf("%s: a proxy has %q", name, got)
		}
	}
	for _, next := range [][]byte{ca.RevocationList(), nil} {
		current.Store(&secrets.Secret{Authorities: secret.Authorities, Revocations: next})
		p.provider.Refresh()
		p.applied()
		if got := revocations("own"); !bytes.Equal(got, next) {
			t.Errorf("a proxy has %q, want %q", got, next)
		}
	}
	if held(t, c)["own"].GetValidationContext().GetCrl() != nil {
		t.Error("an empty list is served, which an Envoy rejects")
	}
}

// TestAuthoritiesAlone: authorities under the name of a certificate are not served, because proxies
// would reject them, but logged with the name. An earlier certificate stays, and the authorities
// are served under their own name.
func TestAuthoritiesAlone(t *testing.T) {
	first, alone := issue(t, "first"), &secrets.Secret{Authorities: issue(t, "ca").Authorities}
	var mu sync.Mutex
	all := map[string]*secrets.Secret{"kubernetes://new": alone, "kubernetes://old": first}
	p := serve(t, secrets.Options{
		Names: []string{"kubernetes://new", "kubernetes://new-cacert", "kubernetes://old"},
		Function: func(n secrets.Name) (*secrets.Secret, error) {
			mu.Lock()
			defer mu.Unlock()
			if s := all[n.Name]; s != nil {
				return s, nil
			}
			return nil, secrets.ErrNotFound
		},
	})
	set := func(name string, s *secrets.Secret) {
		mu.Lock()
		all[name] = s
		mu.Unlock()
		p.provider.Refresh()
		p.applied()
	}
	c := p.client("ingress")
	p.subscribe(c, "kubernetes://new", "kubernetes://new-cacert", "kubernetes://old")
	if have := held(t, c); have["kubernetes://new"] != nil || !isAuthorities(have["kubernetes://new-cacert"], issueOf(alone)) || !isPair(have["kubernetes://old"], first) {
		t.Errorf("at first: %v", have)
	}
	p.logged("secret ingress/kubernetes://new: it has authorities and no certificate")
	set("kubernetes://old", alone)
	if have := held(t, c); !isPair(have["kubernetes://old"], first) {
		t.Errorf("the certificate does not stay: %v", have)
	}
	second := issue(t, "second")
	set("kubernetes://old", second)
	set("kubernetes://new", second)
	if have := held(t, c); !isPair(have["kubernetes://old"], second) || !isPair(have["kubernetes://new"], second) {
		t.Errorf("with certificates: %v", have)
	}
}
