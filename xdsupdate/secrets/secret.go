// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/pilotkit/pilotkit/internal/envoycheck/certificates"
)

// Secret is the content of a secret: a certificate and its key, authorities, or both. All are PEM.
// It must not be modified after it was handed over.
type Secret struct {
	// Certificate is the chain, beginning with the proxy's own certificate.
	Certificate []byte
	Key         PrivateKey
	// Authorities are the certificates with which peers are verified.
	Authorities []byte
	// Revocations are the revocation lists (CRL) of the authorities. Unless it is empty, Envoys reject
	// peers with an authority that has no list there.
	Revocations []byte
}

// PrivateKey is a key that formatting and encoding do not show.
type PrivateKey []byte

const hidden = "[hidden]"

// Format implements fmt.Formatter.
func (PrivateKey) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, hidden) }

// String returns a placeholder.
func (PrivateKey) String() string { return hidden }

// MarshalText implements encoding.TextMarshaler.
func (PrivateKey) MarshalText() ([]byte, error) { return []byte(hidden), nil }

// LogValue implements slog.LogValuer.
func (PrivateKey) LogValue() slog.Value { return slog.StringValue(hidden) }

// ErrNotFound means that a secret does not exist.
var ErrNotFound = errors.New("no such secret")

// The reasons why a secret is not served.
var (
	errNoKey         = errors.New("a certificate without a key, or a key without a certificate")
	errNoAuthorities = errors.New("the authorities are not certificates in PEM")
	errNoRevocations = errors.New("the revocation lists are not in PEM, in blocks called X509 CRL")
)

// check returns the reason why proxies would reject a secret, or why it would not work. A negative
// limit means that the size of a part is not limited.
func (s *Secret) check(limit int) error {
	if size := max(len(s.Certificate), len(s.Key), len(s.Authorities), len(s.Revocations)); limit >= 0 && size > limit {
		return fmt.Errorf("a part of it is larger than the limit of %d bytes", limit)
	}
	if (len(s.Certificate) == 0) != (len(s.Key) == 0) {
		return errNoKey
	}
	if len(s.Key) > 0 {
		if err := certificates.CheckPair(s.Certificate, s.Key); err != nil {
			return err
		}
	}
	if len(s.Authorities) > 0 && !certificates.AreAuthorities(s.Authorities) {
		return errNoAuthorities
	}
	if len(s.Revocations) > 0 && !certificates.AreRevocations(s.Revocations) {
		return errNoRevocations
	}
	return nil
}

// equal compares contents.
func (s *Secret) equal(o *Secret) bool {
	if s == nil || o == nil {
		return s == o
	}
	return bytes.Equal(s.Certificate, o.Certificate) && bytes.Equal(s.Key, o.Key) && bytes.Equal(s.Authorities, o.Authorities) &&
		bytes.Equal(s.Revocations, o.Revocations)
}
