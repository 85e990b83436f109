// SPDX-License-Identifier: Apache-2.0

package secrets_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"go.uber.org/atomic"
	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/secrets"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

// TestRotation: a proxy gets only the new certificate, on its existing stream, and never gets a
// broken pair or one in the middle of a rotation.
func TestRotation(t *testing.T) {
	dir := directory(t.TempDir())
	first, second := issue(t, "first"), issue(t, "second")
	dir.write(t, first)
	other := issue(t, "other")
	p := serve(t, secrets.Options{
		Files:    map[secrets.Name]secrets.Files{{Namespace: "ingress", Name: "kubernetes://shop"}: dir.files()},
		Function: func(secrets.Name) (*secrets.Secret, error) { return other, nil },
	})
	const pair, roots = "kubernetes://shop", "kubernetes://shop-cacert"
	c := p.client("ingress")
	p.subscribe(c, pair, roots, "default")
	// "shop-cacert" may be a secret of its own, which the function has.
	if have := held(t, c); !isPair(have[pair], first) || !isAuthorities(have[roots], other) || !isPair(have["default"], other) {
		t.Fatalf("at first: %d secrets", len(have))
	}
	p.applied()
	before := len(c.Responses())

	writeFile(t, dir.files().Certificate, second.Certificate)
	p.provider.Refresh()
	writeFile(t, dir.files().Certificate, []byte("no PEM"))
	p.provider.Refresh()
	p.applied()
	if n := len(c.Responses()) - before; n != 0 {
		t.Errorf("%d responses while the files do not belong together", n)
	}
	if log := p.log.String(); strings.Count(log, "secret is not served") != 2 || // the reasons differ
		!strings.Contains(log, "kubernetes://shop") {
		t.Errorf("log: %s", log)
	}

	dir.write(t, second)
	p.provider.Refresh()
	p.applied()
	var got []string
	for _, r := range c.Responses()[before:] {
		got = append(got, append(r.Names(), r.Removed...)...)
	}
	if have := held(t, c); !slices.Equal(got, []string{pair}) || !isPair(have[pair], second) || c.Err() != nil {
		t.Errorf("after the rotation: sent %q, stream %v", got, c.Err())
	}
	p.provider.Refresh()
	p.applied()
	if n := len(c.Responses()) - before; n != 1 {
		t.Errorf("%d responses after one rotation", n)
	}
	shown := fmt.Sprintf("%s %+v %#v", p.log, p.server.Proxies(), p.provider)
	for _, s := range []*secrets.Secret{first, second, other} {
		if strings.Contains(shown, strings.Split(string(s.Key), "\n")[1]) {
			t.Errorf("a key shows: %s", shown)
		}
	}
}

// TestComesAndGoes: a secret that is created later is sent then, and one that is
// deleted is removed; the function's errors leave it where it is.
func TestComesAndGoes(t *testing.T) {
	var mu sync.Mutex
	var secret *secrets.Secret
	failure := fmt.Errorf("looked up: %w", secrets.ErrNotFound)
	set := func(s *secrets.Secret, err error) {
		mu.Lock()
		defer mu.Unlock()
		secret, failure = s, err
	}
	p := serve(t, secrets.Options{
		Names: []string{"kubernetes://shop"},
		Function: func(n secrets.Name) (*secrets.Secret, error) {
			mu.Lock()
			defer mu.Unlock()
			if n.Name != "kubernetes://shop" {
				return nil, secrets.ErrNotFound
			}
			if failure == nil && secret == nil {
				panic("with a secret in it")
			}
			return secret, failure
		},
	})
	c := p.client("ingress")
	p.subscribe(c, "kubernetes://shop")
	step := func(what string, want bool) {
		t.Helper()
		p.provider.Refresh()
		p.applied()
		if has := c.State().Has(secrets.Type, "kubernetes://shop"); has != want {
			t.Errorf("%s: has it %t, want %t", what, has, want)
		}
	}
	step("before it exists", false)
	good := issue(t, "good")
	set(good, nil)
	step("created", true)
	set(nil, errors.New("no answer"))
	step("the function fails", true)
	set(nil, nil)
	step("the function panics", true)
	set(&secrets.Secret{Certificate: good.Certificate}, nil)
	step("without its key", true)
	set(&secrets.Secret{Authorities: good.Key}, nil)
	step("authorities that are none", true)
	set(&secrets.Secret{Authorities: slices.Concat(good.Authorities, []byte("-----BEGIN CERTIFICATE-----\ncut o"))}, nil)
	step("authorities that are cut off", true)
	set(&secrets.Secret{Authorities: bytes.ReplaceAll(good.Authorities, []byte("CERTIFICATE"), []byte("TRUSTED CERTIFICATE"))}, nil)
	step("authorities of another kind of PEM", true)
	if !isPair(held(t, c)["kubernetes://shop"], good) {
		t.Error("what cannot be served has taken the place of the last good one")
	}
	set(nil, secrets.ErrNotFound)
	step("deleted", false)
	log := p.log.String()
	if n := strings.Count(log, "secret is not served"); n != 4 || strings.Contains(log, "with a secret") {
		t.Errorf("%d lines in the log: %s", n, log)
	}
}

// TestReferences: proxies may ask for the secrets that Gateways and
// DestinationRules refer to.
func TestReferences(t *testing.T) {
	secret := issue(t, "any")
	p := serve(t, secrets.Options{Function: func(secrets.Name) (*secrets.Secret, error) { return secret, nil }})
	all := []string{
		"ROOTCA", "default", "file-cert:/c~/k", "file-root:/ca", "file-root:system", "kubernetes://client", "kubernetes://client-cacert",
		"kubernetes://port", "kubernetes://port-cacert", "kubernetes://shop", "kubernetes://shop-cacert", "kubernetes://subset", "kubernetes://subset-cacert", "kubernetes://unknown",
	}
	c := p.client("ingress")
	p.subscribe(c, all...)
	expect := func(what string, want ...string) {
		t.Helper()
		p.applied()
		want = append([]string{"ROOTCA", "default"}, want...)
		if got := c.State().Names(secrets.Type); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
	}
	expect("without configs")
	gateway := p.create(istio.Gateway, &networking.Gateway{Servers: []*networking.Server{
		{
			Port: &networking.Port{Number: 443, Name: "a", Protocol: "HTTPS"}, Hosts: []string{"a.com"},
			Tls: &networking.ServerTLSSettings{Mode: networking.ServerTLSSettings_MUTUAL, CredentialName: "shop"},
		},
		{
			Port: &networking.Port{Number: 443, Name: "b", Protocol: "HTTPS"}, Hosts: []string{"b.com"},
			Tls: &networking.ServerTLSSettings{Mode: networking.ServerTLSSettings_SIMPLE, ServerCertificate: "/c", PrivateKey: "/k"},
		},
	}})
	expect("a Gateway", "file-cert:/c~/k", "kubernetes://shop", "kubernetes://shop-cacert")
	tls := func(name string) *networking.ClientTLSSettings {
		return &networking.ClientTLSSettings{Mode: networking.ClientTLSSettings_MUTUAL, CredentialName: name}
	}
	rule := p.create(istio.DestinationRule, &networking.DestinationRule{
		Host: "a.com",
		TrafficPolicy: &networking.TrafficPolicy{
			Tls: tls("client"),
			PortLevelSettings: []*networking.TrafficPolicy_PortTrafficPolicy{
				{Port: &networking.PortSelector{Number: 80}, Tls: tls("port")},
				{Port: &networking.PortSelector{Number: 81}, Tls: &networking.ClientTLSSettings{Mode: networking.ClientTLSSettings_MUTUAL, ClientCertificate: "/c", PrivateKey: "/k", CaCertificates: "/ca"}},
			},
		},
		Subsets: []*networking.Subset{{Name: "v1", TrafficPolicy: &networking.TrafficPolicy{Tls: tls("subset")}}},
	})
	expect("and a DestinationRule", all[2:13]...)
	p.delete(gateway)
	expect("without the Gateway", slices.Concat(all[2:9], all[11:13])...)
	p.delete(rule)
	expect("without any")
}

// TestReferencesReadAgain: configs that are read again count once, so that names without references
// are removed afterwards.
func TestReferencesReadAgain(t *testing.T) {
	secret := issue(t, "any")
	p := serve(t, secrets.Options{Function: func(secrets.Name) (*secrets.Secret, error) { return secret, nil }})
	c := p.client("ingress")
	p.subscribe(c, "kubernetes://client")
	rule := p.create(istio.DestinationRule, &networking.DestinationRule{Host: "a.com", TrafficPolicy: &networking.TrafficPolicy{
		Tls: &networking.ClientTLSSettings{Mode: networking.ClientTLSSettings_SIMPLE, CredentialName: "client"},
	}})
	p.applied()
	p.server.ConfigUpdate(&xdsupdate.PushRequest{Full: true})
	p.applied()
	if !c.State().Has(secrets.Type, "kubernetes://client") {
		t.Error("the secret of a client that verifies its server is not served")
	}
	p.delete(rule)
	p.applied()
	if c.State().Has(secrets.Type, "kubernetes://client") {
		t.Error("the secret is served without a config that refers to it")
	}
}

func (p *plane) create(kind configstore.GroupVersionKind, spec proto.Message) xdsupdate.ConfigKey {
	p.t.Helper()
	key := xdsupdate.ConfigKey{Kind: kind, Namespace: "ingress", Name: "x"}
	c := configstore.Config{Meta: configstore.Meta{GroupVersionKind: kind, Namespace: key.Namespace, Name: key.Name}, Spec: spec}
	if _, err := p.store.Create(c); err != nil {
		p.t.Fatal(err)
	}
	p.store.Drain()
	return key
}

func (p *plane) delete(key xdsupdate.ConfigKey) {
	p.t.Helper()
	if err := p.store.Delete(key.Kind, key.Name, key.Namespace, nil); err != nil {
		p.t.Fatal(err)
	}
	p.store.Drain()
}

// TestFilesOfProxies: names of files are passed on, never read.
func TestFilesOfProxies(t *testing.T) {
	dir := directory(t.TempDir())
	dir.write(t, issue(t, "x"))
	f := dir.files()
	pair, roots := envoy.FileCertificateName(f.Certificate, f.Key), envoy.FileRootsName(f.Authorities)
	p := serve(t, secrets.Options{Names: []string{pair, roots, envoy.SystemRoots}, SystemRoots: "/roots.pem"})
	c := p.client("ingress")
	p.subscribe(c, pair, roots, envoy.SystemRoots)
	have := held(t, c)
	certificate := have[pair].GetTlsCertificate()
	if certificate.GetCertificateChain().GetFilename() != f.Certificate || certificate.GetPrivateKey().GetFilename() != f.Key ||
		certificate.GetWatchedDirectory().GetPath() != string(dir) {
		t.Errorf("%s: %v", pair, certificate)
	}
	if v := have[roots].GetValidationContext(); v.GetTrustedCa().GetFilename() != f.Authorities || v.GetWatchedDirectory().GetPath() != string(dir) {
		t.Errorf("%s: %v", roots, v)
	}
	if v := have[envoy.SystemRoots].GetValidationContext(); v.GetTrustedCa().GetFilename() != "/roots.pem" {
		t.Errorf("%s: %v", envoy.SystemRoots, v)
	}
}

// TestGRPCClients: gRPC clients reject clusters with SDS, so they get no secrets, not even existing
// ones.
func TestGRPCClients(t *testing.T) {
	secret := issue(t, "x")
	p := serve(t, secrets.Options{Function: func(secrets.Name) (*secrets.Secret, error) { return secret, nil }})
	c := xdstest.NewClient(p.conn, xdstest.ClientOptions{Delta: true, Node: &core.Node{Id: "x", UserAgentName: "gRPC Go"}})
	t.Cleanup(c.Close)
	if err := c.Connect(p.context()); err != nil {
		t.Fatal(err)
	}
	p.subscribe(c, "default")
	if n := c.State().Names(secrets.Type); len(n) != 0 {
		t.Errorf("a gRPC client has %q", n)
	}
}

// TestHidden: no way of printing a secret shows its key.
func TestHidden(t *testing.T) {
	secret := issue(t, "x")
	text := string(secret.Key)
	var b strings.Builder
	for _, format := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%c", "%U", "%T %v"} {
		for _, v := range []any{secret, *secret, secret.Key, []any{secret.Key}, map[string]secrets.PrivateKey{"k": secret.Key}} {
			fmt.Fprintf(&b, format+"\n", v)
		}
	}
	for _, v := range []any{secret, secret.Key, map[string]any{"a": *secret}} {
		data, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		b.Write(data)
		for _, h := range []slog.Handler{slog.NewTextHandler(&b, nil), slog.NewJSONHandler(&b, nil)} {
			slog.New(h).Error("x", slog.Any("secret", v), slog.Any("error", fmt.Errorf("%v", v)))
		}
	}
	out := b.String()
	line := strings.Split(text, "\n")[1]
	for _, part := range []string{line, fmt.Sprintf("%x", line), fmt.Sprintf("%X", line), strings.Trim(fmt.Sprintf("%d", []byte(line)), "[]")} {
		if strings.Contains(out, part) {
			t.Errorf("the key shows: %q", part)
		}
	}
	if !strings.Contains(out, "[hidden]") {
		t.Errorf("nothing was printed: %s", out)
	}
}

// TestFilesOfAllNamespaces: files without a namespace are available to proxies of every namespace,
// and a file that is still empty, because it is being written, changes nothing.
func TestFilesOfAllNamespaces(t *testing.T) {
	dir, first := directory(t.TempDir()), issue(t, "first")
	dir.write(t, first)
	const name = "kubernetes://shop"
	p := serve(t, secrets.Options{Files: map[secrets.Name]secrets.Files{{Name: name}: dir.files()}})
	clients := []*xdstest.Client{p.client("one"), p.client("two")}
	for _, c := range clients {
		p.subscribe(c, name, envoy.CredentialRootsName(name))
	}
	expect := func(what string) {
		t.Helper()
		p.provider.Refresh()
		p.applied()
		for _, c := range clients {
			if have := held(t, c); !isPair(have[name], first) || !isAuthorities(have[envoy.CredentialRootsName(name)], first) {
				t.Errorf("%s: %v", what, have)
			}
		}
	}
	expect("at first")
	for _, file := range []string{dir.files().Authorities, dir.files().Certificate} {
		writeFile(t, file, nil)
		expect(file + " is empty")
	}
}

// TestSameFailureAgain: a failure is logged when it begins, each time.
func TestSameFailureAgain(t *testing.T) {
	secret := issue(t, "x")
	var fails atomic.Bool
	p := serve(t, secrets.Options{Function: func(secrets.Name) (*secrets.Secret, error) {
		if fails.Load() {
			return nil, errors.New("out of order")
		}
		return secret, nil
	}})
	p.subscribe(p.client("ingress"), "default")
	for i, failing := range []bool{true, true, false, true} {
		fails.Store(failing)
		p.provider.Refresh()
		if got, want := strings.Count(p.log.String(), "out of order"), []int{1, 1, 1, 2}[i]; got != want {
			t.Errorf("after %d times: logged %d times, want %d", i+1, got, want)
		}
	}
}

// TestUnusedSecretsAreNotRead: when the last config that refers to a secret goes, the
// function is not called for it any more.
func TestUnusedSecretsAreNotRead(t *testing.T) {
	secret := issue(t, "x")
	var calls atomic.Int64
	p := serve(t, secrets.Options{Function: func(n secrets.Name) (*secrets.Secret, error) {
		if n.Name == "kubernetes://shop" {
			calls.Inc()
		}
		return secret, nil
	}})
	gateway := p.create(istio.Gateway, &networking.Gateway{Servers: []*networking.Server{{
		Port: &networking.Port{Number: 443, Name: "a", Protocol: "HTTPS"}, Hosts: []string{"a.com"},
		Tls: &networking.ServerTLSSettings{Mode: networking.ServerTLSSettings_SIMPLE, CredentialName: "shop"},
	}}})
	p.subscribe(p.client("ingress"), "kubernetes://shop")
	p.provider.Refresh()
	if calls.Load() != 2 {
		t.Fatalf("%d calls, want one for the proxy and one for Refresh", calls.Load())
	}
	p.delete(gateway)
	p.applied()
	p.provider.Refresh()
	if calls.Load() != 2 {
		t.Errorf("%d calls after the config has gone, want 2", calls.Load())
	}
}

// issueOf returns a secret with a key that is nowhere.
func issueOf(s *secrets.Secret) *secrets.Secret {
	return &secrets.Secret{Authorities: s.Authorities, Key: []byte("nowhere")}
}
