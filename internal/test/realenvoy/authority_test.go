// SPDX-License-Identifier: Apache-2.0

package realenvoy

import (
	"crypto/tls"
	"crypto/x509"
	"testing"

	issuing "github.com/pilotkit/pilotkit/internal/test/authority"
	"github.com/pilotkit/pilotkit/xdsupdate/secrets"
)

// authority issues secrets.
type authority struct {
	*issuing.Authority
	certificate *x509.Certificate
}

func newAuthority(tb testing.TB) *authority {
	tb.Helper()
	a := issuing.New(tb)
	return &authority{a, a.Certificate}
}

// secret returns a certificate for names, its key and the authority.
func (a *authority) secret(names ...string) *secrets.Secret {
	certificate, key := a.Issue(names...)
	return &secrets.Secret{Certificate: certificate, Key: key, Authorities: a.PEM()}
}

// pair is a certificate for a TLS client.
func (a *authority) pair(t *testing.T, names ...string) tls.Certificate {
	t.Helper()
	return a.Pair(names...)
}
