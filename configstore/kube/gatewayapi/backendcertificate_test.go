// SPDX-License-Identifier: Apache-2.0

package gatewayapi

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore/istio"
)

// TestBackendCertificate: the configs of a Gateway reference its client certificate for backends
// while the certificate is usable and permitted.
func TestBackendCertificate(t *testing.T) {
	t.Parallel()
	const grant = `{kind: ReferenceGrant, metadata: {name: g, namespace: certs}, spec: {
  from: [{group: gateway.networking.k8s.io, kind: Gateway, namespace: infra}], to: [{group: "", kind: Secret}]}}
---
`
	sys, data := newSystem(), certificateData(t)
	secret := func(namespace string) string {
		return "{apiVersion: v1, kind: Secret, metadata: {name: client, namespace: " + namespace + "}, data: " + data + "}\n---\n"
	}
	for _, step := range []struct{ objects, want string }{
		{world + gatewayWithCertificate("{name: client}"), ""}, // There is no such Secret.
		{secret("infra"), "kubernetes-gateway://infra/client"},
		{secret("certs") + gatewayWithCertificate("{name: client, namespace: certs}"), ""},
		{grant, "kubernetes-gateway://certs/client"},
		{world, ""}, // The Gateway has none.
	} {
		if err := sys.applyAll(step.objects); err != nil {
			t.Fatal(err)
		}
		configs := sys.converter.Snapshot().Configs(istio.Gateway)
		if len(configs) != 1 {
			t.Fatalf("%d configs", len(configs))
		}
		if got := BackendCertificateOf(configs[0]); got != step.want {
			t.Errorf("after %s: %q, want %q", step.objects, got, step.want)
		}
		if diff := diffSnapshots(sys.fresh(), sys.converter.Snapshot()); diff != "" {
			t.Errorf("(-fresh +incremental):\n%s", diff)
		}
	}
}

// gatewayWithCertificate returns the Gateway of world with a client certificate for backends.
func gatewayWithCertificate(ref string) string {
	return fmt.Sprintf(`kind: Gateway
metadata: {name: edge, namespace: infra}
spec:
  gatewayClassName: istio
  tls: {backend: {clientCertificateRef: %s}}
  listeners: [{name: web, port: 80, protocol: HTTP, allowedRoutes: {namespaces: {from: All}}}]
---
`, ref)
}

// certificateData returns the data of a Secret with a certificate and its key.
func certificateData(t *testing.T) string {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	encode := func(kind string, der []byte) string {
		return base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
	}
	return fmt.Sprintf("{tls.crt: %s, tls.key: %s}", encode("CERTIFICATE", der), encode("PRIVATE KEY", pkcs8))
}

// TestTerminateMode: the option of a listener overrides the mode that the validation of clients by the
// Gateway implies, so that a certificate of a client may be optional (Istio 1.30).
func TestTerminateMode(t *testing.T) {
	t.Parallel()
	sys, data := newSystem(), certificateData(t)
	secret := "{apiVersion: v1, kind: Secret, metadata: {name: ca, namespace: infra}, data: " +
		strings.Replace(data, "tls.crt", "ca.crt: "+strings.Fields(data)[1]+" tls.crt", 1) + "}\n---\n"
	for mode, want := range map[string]networking.ServerTLSSettings_TLSmode{
		"OPTIONAL_MUTUAL": networking.ServerTLSSettings_OPTIONAL_MUTUAL, "MUTUAL": networking.ServerTLSSettings_MUTUAL, "none": networking.ServerTLSSettings_MUTUAL,
	} {
		if err := sys.applyAll(world + secret + `kind: Gateway
metadata: {name: edge, namespace: infra}
spec:
  gatewayClassName: istio
  tls: {frontend: {default: {validation: {caCertificateRefs: [{group: "", kind: Secret, name: ca}]}}}}
  listeners: [{name: sec, port: 443, protocol: HTTPS, tls: {options: {gateway.istio.io/tls-terminate-mode: ` + mode + `}, certificateRefs: [{name: ca}]}}]
`); err != nil {
			t.Fatal(err)
		}
		configs := sys.converter.Snapshot().Configs(istio.Gateway)
		if len(configs) != 1 {
			t.Fatalf("%s: %d configs", mode, len(configs))
		}
		tls := configs[0].Spec.(*networking.Gateway).GetServers()[0].GetTls()
		if tls.GetMode() != want || tls.GetCaCertCredentialName() != "kubernetes-gateway://infra/ca-cacert" {
			t.Errorf("%s: %v", mode, tls)
		}
	}
}
