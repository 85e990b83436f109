// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	tcp "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/pilotkit/pilotkit/internal/envoycheck/certificates"
	"github.com/pilotkit/pilotkit/internal/test/envoyproxy"
	"github.com/pilotkit/pilotkit/internal/test/tier"
)

// issuer makes certificates, each for a key of its own.
type issuer struct{ tb testing.TB }

func (i issuer) must(err error) {
	i.tb.Helper()
	if err != nil {
		i.tb.Fatal(err)
	}
}

func (i issuer) ec(curve elliptic.Curve) crypto.Signer {
	key, err := ecdsa.GenerateKey(curve, rand.Reader)
	i.must(err)
	return key
}

func (i issuer) rsa(bits int) crypto.Signer {
	i.tb.Setenv("GODEBUG", "rsa1024min=0")
	key, err := rsa.GenerateKey(rand.Reader, bits)
	i.must(err)
	return key
}

// der returns a certificate that the key signs itself.
func (i issuer) der(key crypto.Signer, change func(*x509.Certificate)) []byte {
	template := &x509.Certificate{
		SerialNumber: big.NewInt(7), Subject: pkix.Name{CommonName: "a.example.com"}, DNSNames: []string{"a.example.com"},
		NotBefore: time.Unix(0, 0), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	if change != nil {
		change(template)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	i.must(err)
	return der
}

// negative makes the serial number of a certificate of der negative.
func negative(der []byte) []byte {
	return bytes.Replace(der, []byte{2, 1, 7}, []byte{2, 1, 0x87}, 1)
}

// unknownCurve gives the key of a certificate of der a curve that Go does not know, prime192v2 in place of P-256.
func unknownCurve(der []byte) []byte {
	p256 := []byte{0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7}
	return bytes.Replace(der, p256, append(slices.Clip(p256[:7]), 2), 1)
}

func block(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

func (i issuer) certificate(key crypto.Signer) []byte { return block("CERTIFICATE", i.der(key, nil)) }

func (i issuer) pkcs8(key crypto.Signer) []byte {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	i.must(err)
	return block("PRIVATE KEY", der)
}

func (i issuer) sec1(key crypto.Signer) []byte {
	der, err := x509.MarshalECPrivateKey(key.(*ecdsa.PrivateKey))
	i.must(err)
	return der
}

func (i issuer) pair(key crypto.Signer) *Secret {
	return &Secret{Certificate: i.certificate(key), Key: i.pkcs8(key)}
}

// unwrapped has the base64 of a block in one line.
func unwrapped(text []byte) []byte {
	lines := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
	return slices.Concat(lines[0], []byte("\n"), bytes.Join(lines[1:len(lines)-1], nil), []byte("\n"), lines[len(lines)-1], []byte("\n"))
}

// indented has blanks before the lines of base64.
func indented(text []byte) []byte {
	lines := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
	return slices.Concat(lines[0], []byte("\n  "), bytes.Join(lines[1:len(lines)-1], []byte("\n  ")), []byte("\n"), lines[len(lines)-1], []byte("\n"))
}

// judged is a secret and the expected error; "" if the secret is served.
type judged struct {
	name   string
	secret *Secret
	want   string
}

func pairs(i issuer) []judged {
	p256 := i.ec(elliptic.P256())
	good := i.pair(p256)
	chain := func(more ...[]byte) *Secret {
		return &Secret{Certificate: slices.Concat(append([][]byte{good.Certificate}, more...)...), Key: good.Key}
	}
	with := func(key []byte) *Secret { return &Secret{Certificate: good.Certificate, Key: key} }
	other := i.certificate(i.ec(elliptic.P384()))
	staple := i.der(p256, func(c *x509.Certificate) {
		c.ExtraExtensions = []pkix.Extension{{Id: []int{1, 3, 6, 1, 5, 5, 7, 1, 24}, Value: []byte{0x30, 3, 2, 1, 5}}}
	})
	_, ed, err := ed25519.GenerateKey(rand.Reader)
	i.must(err)
	r := i.rsa(2048)
	crlf := func(b []byte) []byte { return bytes.ReplaceAll(b, []byte("\n"), []byte("\r\n")) }
	return []judged{
		{"P-256", good, ""},
		{"P-384", i.pair(i.ec(elliptic.P384())), ""},
		{"P-521", i.pair(i.ec(elliptic.P521())), ""},
		{"P-224", i.pair(i.ec(elliptic.P224())), "only P-256"},
		{"Ed25519", i.pair(ed), ""},
		{"RSA 2048", i.pair(r), ""},
		{"RSA 3072", i.pair(i.rsa(3072)), ""},
		{"RSA 4096", i.pair(i.rsa(4096)), ""},
		{"RSA 2047", i.pair(i.rsa(2047)), "2048-bit or larger"},
		{"RSA 1024", i.pair(i.rsa(1024)), "2048-bit or larger"},
		{"RSA 2050", i.pair(i.rsa(2050)), ""},
		{"must-staple", &Secret{Certificate: block("CERTIFICATE", staple), Key: good.Key}, "OCSP response is required"},
		{"a chain", chain(other), ""},
		{"a chain, twice", chain(good.Certificate), ""},
		{"a chain with RSA 1024", chain(i.certificate(i.rsa(1024))), ""},
		{"a chain with P-224", chain(i.certificate(i.ec(elliptic.P224()))), ""},
		{"a chain with garbage", chain(block("CERTIFICATE", []byte("garbage"))), "chain"},
		{"a chain with an empty block", chain(block("CERTIFICATE", nil)), "chain"},
		{"a chain with bytes behind", chain(block("CERTIFICATE", append(i.der(p256, nil), 0))), "chain"},
		{"bytes behind the certificate", &Secret{Certificate: block("CERTIFICATE", append(i.der(p256, nil), 0)), Key: good.Key}, "chain"},
		{"a chain that breaks off", chain([]byte("-----BEGIN CERTIFICATE-----\nMIIB")), "chain"},
		{"a chain with a block without end", chain([]byte("-----BEGIN CERTIFICATE-----\nMIIB\n")), "chain"},
		{"a chain with base64 that is none", chain([]byte("-----BEGIN CERTIFICATE-----\n!!!!\n-----END CERTIFICATE-----\n")), "chain"},
		{"a chain and text", chain([]byte("text\n")), ""},
		{"text and a chain", &Secret{Certificate: slices.Concat([]byte("subject=CN=a\n"), good.Certificate), Key: good.Key}, ""},
		{"text in a chain", chain([]byte("\nsubject=CN=b\n"), other), ""},
		{"a key in the chain", chain(good.Key), ""},
		{"a key before the chain", &Secret{Certificate: slices.Concat(good.Key, good.Certificate), Key: good.Key}, ""},
		{"a key within the chain", chain(good.Key, other), ""},
		{"X509 CERTIFICATE", &Secret{Certificate: block("X509 CERTIFICATE", i.der(p256, nil)), Key: good.Key}, "blocks called CERTIFICATE"},
		{"TRUSTED CERTIFICATE", &Secret{Certificate: block("TRUSTED CERTIFICATE", i.der(p256, nil)), Key: good.Key}, "blocks called CERTIFICATE"},
		{"a chain with X509 CERTIFICATE", chain(block("X509 CERTIFICATE", i.der(p256, nil))), "chain"},
		{"headers of PEM", &Secret{Certificate: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Headers: map[string]string{"a": "b"}, Bytes: i.der(p256, nil)}), Key: good.Key}, "chain"},
		{"CRLF", &Secret{Certificate: crlf(good.Certificate), Key: crlf(good.Key)}, ""},
		{"expired", &Secret{Certificate: block("CERTIFICATE", i.der(p256, func(c *x509.Certificate) { c.NotAfter = time.Unix(1, 0) })), Key: good.Key}, ""},
		{"EC PRIVATE KEY", with(block("EC PRIVATE KEY", i.sec1(p256))), ""},
		{"an EC key as RSA PRIVATE KEY", with(block("RSA PRIVATE KEY", i.sec1(p256))), "key"},
		{"an EC key as PRIVATE KEY", with(block("PRIVATE KEY", i.sec1(p256))), "key"},
		{"an EC key as FOO PRIVATE KEY", with(block("FOO PRIVATE KEY", i.sec1(p256))), "key"},
		{"a PKCS 8 key as EC PRIVATE KEY", with(bytes.ReplaceAll(good.Key, []byte(" PRIVATE"), []byte(" EC PRIVATE"))), ""},
		{"RSA PRIVATE KEY", &Secret{Certificate: i.certificate(r), Key: block("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(r.(*rsa.PrivateKey)))}, ""},
		{"an RSA key as PRIVATE KEY", &Secret{Certificate: i.certificate(r), Key: block("PRIVATE KEY", x509.MarshalPKCS1PrivateKey(r.(*rsa.PrivateKey)))}, "key"},
		{"parameters before the key", with(slices.Concat([]byte("-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n"), block("EC PRIVATE KEY", i.sec1(p256)))), ""},
		{"a certificate before the key", with(slices.Concat(good.Certificate, good.Key)), ""},
		{"text before the key", with(slices.Concat([]byte("text\n"), good.Key)), ""},
		{"two keys", with(slices.Concat(good.Key, i.pkcs8(r))), ""},
		{"two keys, the other first", with(slices.Concat(i.pkcs8(r), good.Key)), "belong"},
		{"another key", with(i.pkcs8(i.ec(elliptic.P256()))), "belong"},
		{"a key of garbage", with(block("PRIVATE KEY", []byte("garbage"))), "private key cannot be loaded"},
		{"bytes behind the key", with(block("EC PRIVATE KEY", append(i.sec1(p256), 0))), ""},
		{"an encrypted key", with(bytes.ReplaceAll(good.Key, []byte(" PRIVATE"), []byte(" ENCRYPTED PRIVATE"))), "encrypted"},
		{"a key with headers", with(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Headers: map[string]string{"Proc-Type": "4,ENCRYPTED", "DEK-Info": "AES-128-CBC,00"}, Bytes: i.sec1(p256)})), "private key cannot be loaded"},
		{"one line", &Secret{Certificate: unwrapped(good.Certificate), Key: unwrapped(good.Key)}, ""},
		{"one line of a large certificate", &Secret{Certificate: unwrapped(i.certificate(r)), Key: i.pkcs8(r)}, ""},
		{"blanks before lines", &Secret{Certificate: bytes.ReplaceAll(good.Certificate, []byte("\n"), []byte("\n ")), Key: good.Key}, "chain"},
		{"blanks before base64", &Secret{Certificate: indented(good.Certificate), Key: good.Key}, ""},
		{"blanks behind lines", &Secret{Certificate: bytes.ReplaceAll(good.Certificate, []byte("\n"), []byte("  \n")), Key: good.Key}, ""},
		{"blank lines", &Secret{Certificate: bytes.ReplaceAll(good.Certificate, []byte("\n"), []byte("\n\n")), Key: good.Key}, "chain"},
		{"no line feed at the end", &Secret{Certificate: bytes.TrimSpace(good.Certificate), Key: bytes.TrimSpace(good.Key)}, ""},
		{"two certificates without a line feed", &Secret{Certificate: slices.Concat(bytes.TrimSpace(good.Certificate), other), Key: good.Key}, "chain"},
		{"NUL", &Secret{Certificate: slices.Concat([]byte{0}, good.Certificate), Key: good.Key}, "chain"},
		{"NUL behind", chain([]byte{0}), ""},
		{"byte order mark", &Secret{Certificate: slices.Concat([]byte("\ufeff"), good.Certificate), Key: good.Key}, "chain"},
		{"another end", &Secret{Certificate: bytes.Replace(good.Certificate, []byte("END CERTIFICATE"), []byte("END X509 CERTIFICATE"), 1), Key: good.Key}, "chain"},
		{"END alone", chain([]byte("-----END CERTIFICATE-----\n")), ""},
		{"BEGIN in a line", chain([]byte("a -----BEGIN CERTIFICATE-----\n")), ""},
		{"BEGIN of nothing", chain([]byte("-----BEGIN -----\n")), "chain"},
		{"BEGIN with text behind", chain([]byte("-----BEGIN CERTIFICATE----- x\n")), "chain"},
		{"dashes", chain([]byte("-----\n-----BEGIN\n")), ""},
		{"a PKCS 8 key as RSA PRIVATE KEY", &Secret{Certificate: i.certificate(r), Key: bytes.ReplaceAll(i.pkcs8(r), []byte(" PRIVATE"), []byte(" RSA PRIVATE"))}, ""},
		{"an RSA key as EC PRIVATE KEY", &Secret{Certificate: i.certificate(r), Key: block("EC PRIVATE KEY", x509.MarshalPKCS1PrivateKey(r.(*rsa.PrivateKey)))}, "key"},
		{"a broken block before the key", with(slices.Concat([]byte("-----BEGIN EC PARAMETERS-----\n!!!\n-----END EC PARAMETERS-----\n"), good.Key)), "key"},
		{"a broken block behind the key", with(slices.Concat(good.Key, []byte("-----BEGIN EC PARAMETERS-----\n!!!\n-----END EC PARAMETERS-----\n"))), ""},
		{"another kind of key before the key", with(slices.Concat(block("FOO PRIVATE KEY", i.sec1(p256)), good.Key)), ""},
		{"X509 CERTIFICATE first", &Secret{Certificate: slices.Concat(block("X509 CERTIFICATE", i.der(i.ec(elliptic.P256()), nil)), good.Certificate), Key: good.Key}, "chain"},
		{"no serial number", &Secret{Certificate: block("CERTIFICATE", i.der(p256, func(c *x509.Certificate) { c.SerialNumber = big.NewInt(0) })), Key: good.Key}, ""},
		{"a negative serial number", &Secret{Certificate: block("CERTIFICATE", negative(i.der(p256, nil))), Key: good.Key}, ""},
		{"a chain with a negative serial number", chain(block("CERTIFICATE", negative(i.der(p256, nil)))), ""},
		{"a chain with an unknown curve", chain(block("CERTIFICATE", unknownCurve(i.der(p256, nil)))), ""},
		{"an unknown curve", &Secret{Certificate: block("CERTIFICATE", unknownCurve(i.der(p256, nil))), Key: good.Key}, "only"},
		{"SHA-384", &Secret{Certificate: block("CERTIFICATE", i.der(p256, func(c *x509.Certificate) { c.SignatureAlgorithm = x509.ECDSAWithSHA384 })), Key: good.Key}, ""},
	}
}

func roots(i issuer) []judged {
	ca := i.certificate(i.ec(elliptic.P256()))
	of := func(parts ...[]byte) *Secret { return &Secret{Authorities: slices.Concat(parts...)} }
	crl := func() []byte {
		key := i.ec(elliptic.P256())
		cert, err := x509.ParseCertificate(i.der(key, func(c *x509.Certificate) { c.KeyUsage = x509.KeyUsageCRLSign; c.SubjectKeyId = []byte{1} }))
		i.must(err)
		der, err := x509.CreateRevocationList(rand.Reader, &x509.RevocationList{Number: big.NewInt(1), NextUpdate: time.Now().Add(time.Hour)}, cert, key)
		i.must(err)
		return block("X509 CRL", der)
	}
	first := func() []byte {
		var list pkix.CertificateList // package x509 has no lists of version 1
		der, _ := pem.Decode(crl())
		_, err := asn1.Unmarshal(der.Bytes, &list)
		i.must(err)
		list.TBSCertList.Raw, list.TBSCertList.Version, list.TBSCertList.Extensions = nil, 0, nil
		out, err := asn1.Marshal(list)
		i.must(err)
		return block("X509 CRL", out)
	}
	revoked := func(parts ...[]byte) *Secret { return &Secret{Authorities: ca, Revocations: slices.Concat(parts...)} }
	return []judged{
		{"a list", revoked(crl()), ""},
		{"two lists", revoked(crl(), []byte("# Root\n"), crl()), ""},
		{"a list of version 1", revoked(first()), ""},
		{"a list that is garbage", revoked(crl(), block("X509 CRL", []byte("garbage"))), "revocation"},
		{"a list that breaks off", revoked(crl(), []byte("-----BEGIN X509 CRL-----\nMIIB")), "revocation"},
		{"certificates for lists", revoked(ca), "revocation"},
		{"text for lists", revoked([]byte("text\n")), "revocation"},
		{"one", of(ca), ""},
		{"two", of(ca, i.certificate(i.rsa(2048))), ""},
		{"one twice", of(ca, ca), ""},
		{"P-224", of(i.certificate(i.ec(elliptic.P224()))), ""},
		{"RSA 1024", of(i.certificate(i.rsa(1024))), ""},
		{"garbage", of(block("CERTIFICATE", []byte("garbage"))), "authorities"},
		{"the second is garbage", of(ca, block("CERTIFICATE", []byte("garbage"))), "authorities"},
		{"a block that breaks off", of(ca, []byte("-----BEGIN CERTIFICATE-----\nMIIB")), "authorities"},
		{"X509 CERTIFICATE", of(block("X509 CERTIFICATE", i.der(i.ec(elliptic.P256()), nil))), "authorities"},
		{"TRUSTED CERTIFICATE", of(block("TRUSTED CERTIFICATE", i.der(i.ec(elliptic.P256()), nil))), "authorities"},
		{"text before", of([]byte("# Root\n"), ca), ""},
		{"text between", of(ca, []byte("\n# Root\n"), i.certificate(i.rsa(2048))), ""},
		{"text behind", of(ca, []byte("# Root\n")), ""},
		{"a key", of(ca, i.pkcs8(i.ec(elliptic.P256()))), "authorities"},
		{"revocations", of(ca, crl()), "authorities"},
		{"revocations alone", of(crl()), "authorities"},
		{"headers of PEM", of(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Headers: map[string]string{"a": "b"}, Bytes: i.der(i.ec(elliptic.P256()), nil)})), "authorities"},
		{"one line", of(unwrapped(i.certificate(i.rsa(2048)))), ""},
		{"blanks before base64", of(indented(ca)), ""},
		{"bytes behind", of(block("CERTIFICATE", append(i.der(i.ec(elliptic.P256()), nil), 0))), "authorities"},
		{"a broken block of another type", of(ca, []byte("-----BEGIN FOO-----\n!!!\n-----END FOO-----\n")), "authorities"},
		{"another block", of(ca, block("FOO", []byte("foo"))), "authorities"},
		{"no authority", of(block("CERTIFICATE", i.der(i.ec(elliptic.P256()), func(c *x509.Certificate) { c.IsCA = false }))), ""},
		{"expired", of(block("CERTIFICATE", i.der(i.ec(elliptic.P256()), func(c *x509.Certificate) { c.NotAfter = time.Unix(1, 0) }))), ""},
		{"a negative serial number", of(ca, block("CERTIFICATE", negative(i.der(i.ec(elliptic.P256()), nil)))), ""},
		{"an unknown curve", of(ca, block("CERTIFICATE", unknownCurve(i.der(i.ec(elliptic.P256()), nil)))), ""},
		{"an unknown curve alone", of(block("CERTIFICATE", unknownCurve(i.der(i.ec(elliptic.P256()), nil)))), ""},
		{"text alone", of([]byte("text\n")), "authorities"},
	}
}

// TestSecretsThatProxiesRefuse: each rejected secret has the expected error.
func TestSecretsThatProxiesRefuse(t *testing.T) {
	for _, j := range append(pairs(issuer{t}), roots(issuer{t})...) {
		err := j.secret.check(-1)
		if (err == nil) != (j.want == "") || err != nil && !strings.Contains(err.Error(), j.want) {
			t.Errorf("%s: %v, want %q", j.name, err, j.want)
		}
	}
}

// TestEnvoyAgrees tests all supported releases: each accepts all served secrets. Of the secrets
// that are not served, each is rejected by at least one release, or is a documented exception.
func TestEnvoyAgrees(t *testing.T) {
	stricter := []string{
		"a chain with bytes behind", "X509 CERTIFICATE", "TRUSTED CERTIFICATE", "a chain with X509 CERTIFICATE", "BEGIN with text behind",
		"a key", "revocations", "bytes behind", "another block", // among authorities
		"certificates for lists", "text for lists", // with which no peer would be accepted
	}
	for _, list := range [][]judged{pairs(issuer{t}), roots(issuer{t})} {
		refusedBy := make([]string, len(list))
		for _, program := range envoyproxy.Programs(t) {
			for i, verdict := range verdictsOf(t, program, list) {
				if verdict != "" {
					refusedBy[i] += program.String() + ": " + verdict + "; "
				}
			}
		}
		for i, j := range list {
			switch served := j.secret.check(-1) == nil; {
			case served && refusedBy[i] != "":
				t.Errorf("%s is served, and refused by %s", j.name, refusedBy[i])
			case !served && refusedBy[i] == "" && tier.Full() && // older releases reject it
				!slices.Contains(stricter, j.name):
				t.Errorf("%s is refused, %v, and no Envoy does", j.name, j.secret.check(-1))
			}
		}
	}
}

// FuzzSecret: no secret causes a panic.
func FuzzSecret(f *testing.F) {
	for _, j := range append(pairs(issuer{f}), roots(issuer{f})...) {
		f.Add(j.secret.Certificate, []byte(j.secret.Key), j.secret.Authorities, j.secret.Revocations)
	}
	f.Fuzz(func(_ *testing.T, certificate, key, authorities, revocations []byte) {
		_ = (&Secret{Certificate: certificate, Key: key, Authorities: authorities, Revocations: revocations}).check(-1)
		_ = certificates.CheckPair(certificate, key)
	})
}

func verdictsOf(t *testing.T, program envoyproxy.Program, list []judged) []string {
	t.Helper()
	usable := issuer{t}.pair(issuer{t}.ec(elliptic.P256()))
	var listeners []*listenerv3.Listener
	for _, j := range list {
		s, common := j.secret, &tlsv3.CommonTlsContext{}
		if len(s.Authorities) > 0 {
			common.ValidationContextType = &tlsv3.CommonTlsContext_ValidationContext{ValidationContext: s.authorities("a").GetValidationContext()}
			s = usable
		}
		common.TlsCertificates = []*tlsv3.TlsCertificate{certificate("a", inline(s.Certificate), inline(s.Key), "").GetTlsCertificate()}
		listeners = append(listeners, &listenerv3.Listener{FilterChains: []*listenerv3.FilterChain{{
			Filters: []*listenerv3.Filter{{Name: "tcp", ConfigType: &listenerv3.Filter_TypedConfig{TypedConfig: packed(t, &tcp.TcpProxy{
				StatPrefix: "s", ClusterSpecifier: &tcp.TcpProxy_Cluster{Cluster: "c"},
			})}}},
			TransportSocket: &core.TransportSocket{Name: "tls", ConfigType: &core.TransportSocket_TypedConfig{
				TypedConfig: packed(t, &tlsv3.DownstreamTlsContext{CommonTlsContext: common}),
			}},
		}}})
	}
	return envoyproxy.ListenerVerdicts(t, envoyproxy.Options{Program: program}, listeners)
}

func packed(t *testing.T, m proto.Message) *anypb.Any {
	t.Helper()
	out, err := anypb.New(m)
	if err != nil {
		t.Fatal(err)
	}
	return out
}
