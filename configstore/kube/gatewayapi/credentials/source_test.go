// SPDX-License-Identifier: Apache-2.0

package credentials_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/kube/gatewayapi"
	"github.com/pilotkit/pilotkit/configstore/kube/gatewayapi/credentials"
	"github.com/pilotkit/pilotkit/configstore/manifest"
	"github.com/pilotkit/pilotkit/configstore/memory"
	"github.com/pilotkit/pilotkit/internal/test/testmain"
	"github.com/pilotkit/pilotkit/xdsupdate/secrets"
)

func TestMain(m *testing.M) { testmain.Verify(m) }

// data contains Secrets and ConfigMaps.
type data struct {
	secrets    map[gatewayapi.Key]map[string][]byte
	configMaps map[gatewayapi.Key]map[string]string
}

func (d data) Secret(key gatewayapi.Key) map[string][]byte    { return d.secrets[key] }
func (d data) ConfigMap(key gatewayapi.Key) map[string]string { return d.configMaps[key] }

func certificate(t *testing.T) (certificate, key []byte) {
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
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8})
}

const gateways = `
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: edge}
spec: {controllerName: istio.io/gateway-controller}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: edge, namespace: infra}
spec:
  gatewayClassName: edge
  tls:
    frontend: {default: {validation: {caCertificateRefs: [{group: "", kind: ConfigMap, name: clients}]}}}
    backend: {clientCertificateRef: {name: client}}
  listeners:
  - {name: web, port: 443, protocol: HTTPS, tls: {certificateRefs: [{name: shop, namespace: certs}]}}
`

const grant = `
apiVersion: gateway.networking.k8s.io/v1
kind: ReferenceGrant
metadata: {name: edge, namespace: certs}
spec:
  from: [{group: gateway.networking.k8s.io, kind: Gateway, namespace: infra}]
  to: [{group: "", kind: Secret, name: shop}]
`

const policy = `
apiVersion: v1
kind: Service
metadata: {name: cart, namespace: shop}
spec: {ports: [{name: https, port: 443}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: BackendTLSPolicy
metadata: {name: cart, namespace: shop}
spec:
  targetRefs: [{group: "", kind: Service, name: cart}]
  validation: {hostname: cart.example.com, caCertificateRefs: [{group: "", kind: ConfigMap, name: roots}]}
`

// TestAccess: a certificate of another namespace is served to the proxies of a Gateway that
// references it, as long as a ReferenceGrant permits that, and to no other proxy.
func TestAccess(t *testing.T) {
	chain, key := certificate(t)
	revoked := []byte("the revocation lists")
	shop, clients := gatewayapi.Key{Namespace: "certs", Name: "shop"}, gatewayapi.Key{Namespace: "infra", Name: "clients"}
	client := gatewayapi.Key{Namespace: "infra", Name: "client"}
	have := data{
		secrets: map[gatewayapi.Key]map[string][]byte{
			shop: {"tls.crt": chain, "tls.key": key, "ca.crt": chain, "ca.crl": revoked}, client: {"tls.crt": chain, "tls.key": key},
		},
		configMaps: map[gatewayapi.Key]map[string]string{
			clients:                            {"ca.crt": string(chain), "ca.crl": string(revoked)},
			{Namespace: "shop", Name: "roots"}: {"cacert": string(chain), "crl": string(revoked)},
		},
	}
	objects := memory.NewController(memory.Make(gatewayapi.DirectorySchemas()))
	cache := gatewayapi.NewCache(objects)
	source := credentials.New(cache, have)
	changes := 0
	source.OnChange(func() { changes++ })
	cache.Apply(
		gatewayapi.Set(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "certs", Name: "shop"}, Data: have.secrets[shop]}),
		gatewayapi.Set(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "infra", Name: "client"}, Data: have.secrets[client]}),
		gatewayapi.Set(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "infra", Name: "clients"}, Data: have.configMaps[clients]}),
		gatewayapi.Set(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "roots"}, Data: map[string]string{"ca.crt": string(chain)}}),
	)
	apply := func(text string, remove bool) {
		t.Helper()
		for _, doc := range manifest.Parse(objects.Schemas(), []byte(text), manifest.Options{}) {
			var err error
			if remove {
				err = objects.Delete(doc.Config.GroupVersionKind, doc.Config.Name, doc.Config.Namespace, nil)
			} else if err = doc.Err; err == nil {
				_, err = configstore.Upsert(objects, doc.Config)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		objects.Drain()
		cache.HasSynced()
		cache.Drain()
	}
	const name = "kubernetes-gateway://certs/shop"
	check := func(namespace, name string, want func(*secrets.Secret) bool) {
		t.Helper()
		secret, err := source.Find(secrets.Name{Namespace: namespace, Name: name})
		if want == nil {
			if !errors.Is(err, secrets.ErrNotFound) {
				t.Errorf("%s for %s: %v", name, namespace, err)
			}
			return
		}
		if err != nil || !want(secret) {
			t.Errorf("%s for %s: %v", name, namespace, err)
		}
	}
	pair := func(s *secrets.Secret) bool {
		return string(s.Certificate) == string(chain) && string(s.Key) == string(key) && s.Authorities == nil
	}
	roots := func(s *secrets.Secret) bool {
		return s.Key == nil && string(s.Authorities) == string(chain) && string(s.Revocations) == string(revoked)
	}

	apply(gateways, false)
	check("infra", name, nil)
	apply(grant, false)
	check("infra", name, pair)
	check("infra", "kubernetes-gateway://infra/client", pair) // the client certificate of the Gateway
	check("certs", "kubernetes-gateway://infra/client", nil)
	check("certs", name, nil) // The Secret's own namespace has no Gateway.
	check("shop", name, nil)
	check("infra", name+"-cacert", nil) // Nobody validates with it.
	check("infra", "configmap://infra/clients-cacert", roots)
	check("shop", "configmap://infra/clients-cacert", nil)
	check("certs", "kubernetes://shop", func(s *secrets.Secret) bool {
		return len(s.Key) > 0 && len(s.Authorities) > 0 && len(s.Revocations) > 0
	})
	check("infra", "kubernetes://shop", nil)
	before := changes
	apply(grant, true)
	check("infra", name, nil)
	if changes == before {
		t.Error("nobody was told that the grant has gone")
	}
	check("infra", "configmap://shop/roots-cacert", nil)
	apply(policy, false)
	check("infra", "configmap://shop/roots-cacert", roots)
	check("infra", "configmap://shop/roots", nil)
}
