// SPDX-License-Identifier: Apache-2.0

//go:build unix

package secrets_test

import (
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/secrets"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

// TestSpecialFiles: a key file that becomes something that cannot be read, or not to its
// end, costs its own secret the rotation, and no other one.
func TestSpecialFiles(t *testing.T) {
	for what, replace := range map[string]func(file string) error{
		"a named pipe": func(file string) error { return syscall.Mkfifo(file, 0o600) },
		"a device":     func(file string) error { return os.Symlink("/dev/zero", file) },
		"a directory":  func(file string) error { return os.Mkdir(file, 0o700) },
		"too many":     func(file string) error { return os.Symlink(file, file) },
		"larger than the limit": func(file string) error {
			if err := os.WriteFile(file, nil, 0o600); err != nil {
				return err
			}
			return os.Truncate(file, 1<<30)
		},
	} {
		t.Run(what, func(t *testing.T) {
			bad, good := directory(t.TempDir()), directory(t.TempDir())
			first, second, third := issue(t, "first"), issue(t, "second"), issue(t, "third")
			bad.write(t, first)
			good.write(t, first)
			p := serve(t, secrets.Options{Files: map[secrets.Name]secrets.Files{{Name: "bad"}: bad.files(), {Name: "good"}: good.files()}})
			c := p.client("ingress")
			p.subscribe(c, "bad", "good")
			key := bad.files().Key
			if err := os.Remove(key); err != nil {
				t.Fatal(err)
			}
			if err := replace(key); err != nil {
				t.Fatal(err)
			}
			for _, next := range []*secrets.Secret{second, third} {
				good.write(t, next)
				p.provider.Refresh()
				p.applied()
				if have := held(t, c); !isPair(have["good"], next) || !isPair(have["bad"], first) {
					t.Fatalf("a proxy has %v", have)
				}
			}
			if log := p.log.String(); strings.Count(log, what) != 1 || strings.Count(log, key) != 1 {
				t.Errorf("want it logged once, with the file: %s", log)
			}
			if err := os.Remove(key); err != nil {
				t.Fatal(err)
			}
			bad.write(t, second)
			p.provider.Refresh()
			p.applied()
			if have := held(t, c); !isPair(have["bad"], second) {
				t.Errorf("it does not recover: %v", have)
			}
		})
	}
}

// TestProxiesBesideWhatHangs: on separate streams, and on a stream that also has hanging secrets,
// proxies get the other secrets, and get the hanging ones as soon as they exist.
func TestProxiesBesideWhatHangs(t *testing.T) {
	secret, hanging := issue(t, "x"), make(chan struct{})
	p := serve(t, secrets.Options{
		Names: []string{"hangs", "good", "other"},
		Function: func(n secrets.Name) (*secrets.Secret, error) {
			if n.Name == "hangs" {
				<-hanging
			}
			return secret, nil
		},
	})
	stop := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() { p.provider.Run(stop) })
	t.Cleanup(func() {
		close(stop)
		running.Wait()
	})
	one, two := p.client("one"), p.client("two")
	p.subscribe(one, "good", "hangs")
	p.subscribe(one, "other") // more names on a stream that has some
	p.subscribe(two, "hangs")
	p.subscribe(two, "good", "other")
	await := func(count int) {
		t.Helper()
		for _, c := range []*xdstest.Client{one, two} {
			if err := c.Await(p.context(), func(s xdstest.State) bool { return len(s.Names(secrets.Type)) == count }); err != nil {
				t.Fatalf("a proxy has %d secrets, want %d: %v", len(held(t, c)), count, err)
			}
		}
	}
	await(2)
	close(hanging)
	await(3)
}

// TestTooLarge: the function's secrets have the same size limit as files.
func TestTooLarge(t *testing.T) {
	secret := issue(t, "x")
	for limit, want := range map[int]bool{len(secret.Certificate): true, len(secret.Certificate) - 1: false, -1: true, 0: true} {
		p := serve(t, secrets.Options{MaxBytes: limit, Function: func(secrets.Name) (*secrets.Secret, error) { return secret, nil }})
		c := p.client("ingress")
		p.subscribe(c, "default", envoy.MeshRoots)
		if got := len(held(t, c)) == 2; got != want || strings.Contains(p.log.String(), "larger than the limit") == want {
			t.Errorf("with a limit of %d: served %t, want %t; log: %s", limit, got, want, p.log)
		}
	}
	d := directory(t.TempDir())
	d.write(t, secret)
	p := serve(t, secrets.Options{MaxBytes: len(secret.Certificate) - 1, Files: map[secrets.Name]secrets.Files{{Name: "default"}: d.files()}})
	c := p.client("ingress")
	p.subscribe(c, "default")
	if len(held(t, c)) != 0 || !strings.Contains(p.log.String(), "larger than the limit") {
		t.Errorf("a file that is too large is served, log: %s", p.log)
	}
}

// TestAllowIsAskedForTheCredential: who may have a credential may have its authorities,
// under either of their names: Allow never gets that of the authorities.
func TestAllowIsAskedForTheCredential(t *testing.T) {
	secret := issue(t, "x")
	var mu sync.Mutex
	asked := make(map[secrets.Name]bool)
	credential := secrets.Name{Namespace: "owner", Name: "kubernetes://shop"}
	names := []string{"kubernetes://owner/shop", "kubernetes://owner/shop-cacert"}
	for _, separate := range []bool{true, false} {
		p := serve(t, secrets.Options{
			Names: names,
			Function: func(n secrets.Name) (*secrets.Secret, error) {
				if n == credential || separate && n.Name == "kubernetes://shop-cacert" {
					return secret, nil
				}
				return nil, secrets.ErrNotFound
			},
			Allow: func(_ string, n secrets.Name) bool {
				mu.Lock()
				defer mu.Unlock()
				asked[n] = true
				return n == credential
			},
		})
		c := p.client("ingress")
		p.subscribe(c, names...)
		if have := held(t, c); !isPair(have[names[0]], secret) || !isAuthorities(have[names[1]], secret) {
			t.Errorf("authorities of their own %t: a proxy that may have the credential has %v", separate, have)
		}
		mu.Lock()
		if len(asked) != 1 || !asked[credential] {
			t.Errorf("Allow was asked about %v", asked)
		}
		mu.Unlock()
	}
}
