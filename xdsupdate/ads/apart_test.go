// SPDX-License-Identifier: Apache-2.0

package ads_test

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"go.uber.org/atomic"

	"github.com/pilotkit/pilotkit/internal/envoycheck"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

// TestPartsAreAwaited: of resources that come in responses of their own the next ones come
// when the client has answered all that it was sent.
func TestPartsAreAwaited(t *testing.T) {
	for protocol, delta := range protocols() {
		t.Run(protocol, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const atOnce = 16
				values := make(map[string]string)
				var names []string
				for i := range 40 {
					names = append(names, fmt.Sprintf("r%02d", i))
					values[names[i]] = "1"
				}
				s := newRefusalScene(t, envoy.RouteType, delta, values)
				c := s.fixture.client(xdstest.ClientOptions{Delta: delta, Node: node("slow", "shop"), Manual: true})
				s.subscribe(c, envoy.RouteType, names...)
				synctest.Wait()
				check(t, "at first", len(c.Responses()), atOnce)
				for i := range atOnce {
					check(t, fmt.Sprint("after answers: ", i), len(c.Responses()), atOnce)
					if err := c.Ack(c.Responses()[i]); err != nil {
						t.Fatal(err)
					}
					synctest.Wait()
				}
				check(t, "after all", len(c.Responses()), 2*atOnce)
			})
		})
	}
}

// forgetful handles secrets as Envoy does: it looks at a rejected secret again only if the secret
// differs from the rejected one, and otherwise ACKs it without using it.
type forgetful struct {
	fails   atomic.Bool
	last    map[string][]byte // the secrets that it looked at last
	has     map[string]bool
	looked  int
	invalid error
}

func (e *forgetful) answer(r xdstest.Response) error {
	for _, res := range r.Resources {
		m, err := res.Message()
		if err != nil {
			return err
		}
		if e.invalid = errors.Join(e.invalid, envoycheck.Envoy(m)); bytes.Equal(e.last[res.Name], res.Any.GetValue()) {
			continue
		}
		e.last[res.Name] = res.Any.GetValue()
		e.looked++
		if e.fails.Load() {
			return errors.New("Invalid path")
		}
		e.has[res.Name] = true
	}
	return nil
}

// TestRefusedSecretsAreLookedAt: a rejected secret that has not changed is sent again in another
// encoding, so that a client that compares secrets looks at it, for each kind of secret.
func TestRefusedSecretsAreLookedAt(t *testing.T) {
	file := &core.DataSource{Specifier: &core.DataSource_Filename{Filename: "/etc/x.pem"}}
	for kind, secret := range map[string]*tlsv3.Secret{
		"certificate": {Name: "s", Type: &tlsv3.Secret_TlsCertificate{TlsCertificate: &tlsv3.TlsCertificate{CertificateChain: file, PrivateKey: file}}},
		"roots":       {Name: "s", Type: &tlsv3.Secret_ValidationContext{ValidationContext: &tlsv3.CertificateValidationContext{TrustedCa: file}}},
	} {
		for protocol, delta := range protocols() {
			t.Run(kind+" "+protocol, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					f := serve(t, ads.Options{})
					f.setResource("s", secret)
					f.flush()
					e := &forgetful{last: make(map[string][]byte), has: make(map[string]bool)}
					e.fails.Store(true)
					c := f.client(xdstest.ClientOptions{Delta: delta, Node: node("a", "shop"), Answer: e.answer})
					f.subscribe(c, secretType, "s")
					time.Sleep(30 * time.Second)
					synctest.Wait()
					if e.looked < 4 {
						t.Errorf("looked at %d times", e.looked)
					}
					if faults, _ := f.Faults(); f.WaitApplied(f.context(), nil) == nil || len(faults) != 1 {
						t.Error("nothing is refused")
					}
					e.fails.Store(false)
					time.Sleep(2 * time.Minute)
					synctest.Wait()
					if !e.has["s"] || e.invalid != nil {
						t.Errorf("the client has it: %t; %v", e.has["s"], e.invalid)
					}
					if err := f.WaitApplied(f.context(), nil); err != nil {
						t.Error(err)
					}
				})
			})
		}
	}
}
