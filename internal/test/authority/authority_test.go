// SPDX-License-Identifier: Apache-2.0

package authority

import (
	"crypto/x509"
	"encoding/pem"
	"testing"

	"github.com/pilotkit/pilotkit/internal/test/testmain"
)

func TestMain(m *testing.M) { testmain.Verify(m) }

// TestIssue: an authority verifies exactly the certificates that it has issued.
func TestIssue(t *testing.T) {
	a, other := New(t), New(t)
	pair := a.Pair("web.example.com", "spiffe://cluster.local/ns/shop/sa/web")
	if _, err := pair.Leaf.Verify(x509.VerifyOptions{Roots: a.Pool(), DNSName: "web.example.com"}); err != nil {
		t.Error(err)
	}
	if _, err := pair.Leaf.Verify(x509.VerifyOptions{Roots: other.Pool()}); err == nil {
		t.Error("another authority verifies the certificate")
	}
	block, _ := pem.Decode(a.RevocationList())
	list, err := x509.ParseRevocationList(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	if err := list.CheckSignatureFrom(a.Certificate); err != nil {
		t.Error(err)
	}
}
