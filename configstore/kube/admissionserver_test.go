// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/pilotkit/pilotkit/configstore/kube"
	"github.com/pilotkit/pilotkit/internal/test/kubetest"
)

// webhookGroup is the group of the kind with webhooks.
const webhookGroup = "webhook.example.com"

// certificate returns a certificate for 127.0.0.1 that is its own authority, and that
// authority as PEM.
func certificate(t *testing.T) (tls.Certificate, []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// serveWebhook registers a handler as the webhook of an API server for the resources of
// webhookGroup in a namespace. The API server may take a while to begin and to end calling it.
func serveWebhook(t *testing.T, server *kubetest.Server, handler http.Handler, namespace string, versions ...string) {
	t.Helper()
	cert, authority := certificate(t)
	webhook := httptest.NewUnstartedServer(handler)
	webhook.TLS = &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12}
	webhook.StartTLS()
	t.Cleanup(webhook.Close)
	none, fail, exact, url := admissionregistrationv1.SideEffectClassNone, admissionregistrationv1.Fail, admissionregistrationv1.Exact, webhook.URL+"/validate"
	configs := clientset(t, server).AdmissionregistrationV1().ValidatingWebhookConfigurations()
	_, err := configs.Create(t.Context(), &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: namespace},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: "validate." + webhookGroup, SideEffects: &none, FailurePolicy: &fail, MatchPolicy: &exact, AdmissionReviewVersions: []string{"v1"},
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": namespace}},
			ClientConfig:      admissionregistrationv1.WebhookClientConfig{URL: &url, CABundle: authority},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.OperationAll},
				Rule: admissionregistrationv1.Rule{
					APIGroups: []string{webhookGroup}, APIVersions: versions, Resources: []string{"*/*"},
				},
			}},
		}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := configs.Delete(context.Background(), namespace, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
}

// heard contains the warnings that a client has received.
type heard struct {
	mu   sync.Mutex
	list []string
}

// HandleWarningHeader implements rest.WarningHandler.
func (h *heard) HandleWarningHeader(_ int, _, text string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.list = append(h.list, text)
}

func (h *heard) take() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	list := h.list
	h.list = nil
	return list
}

// limitObject returns an object of that group.
func limitObject(version, name, value string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": webhookGroup + "/" + version, "kind": "Limit",
		"metadata": map[string]any{"name": name}, "spec": map[string]any{"value": value},
	}}
}

// TestAdmission: a real API server calls the handler for every write. Rejected objects are not
// stored, and the client gets the error and the warnings.
func TestAdmission(t *testing.T) {
	server, schemas, _, namespace, stored := serveLimits(t, webhookGroup)
	serveWebhook(t, server, kube.NewAdmissionHandler(schemas), namespace, "*")
	warnings := &heard{}
	config := restConfig(server.Config())
	config.WarningHandler = warnings
	objects := resourceOf(t, config, "v1", namespace)
	aliased := resourceOf(t, config, "v1beta1", namespace)
	// The server does not call the webhook at once.
	eventually(t, "the webhook is asked", func() bool {
		_, err := objects.Create(t.Context(), limitObject("v1", "first", "bad"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return apierrors.IsInvalid(err)
	})
	warnings.take()

	expectRefused := func(name string, err error) {
		t.Helper()
		want := `admission webhook "validate.webhook.example.com" denied the request: Limit ` + namespace + "/" + name + " is invalid: spec.value: is bad"
		if !apierrors.IsInvalid(err) || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
		cause := []metav1.StatusCause{{Type: metav1.CauseTypeFieldValueInvalid, Field: "spec.value", Message: "is bad"}}
		if status, ok := errors.AsType[*apierrors.StatusError](err); ok {
			if diff := cmp.Diff(cause, status.ErrStatus.Details.Causes); diff != "" {
				t.Errorf("the causes differ (-want +got):\n%s", diff)
			}
		}
		if heard := warnings.take(); len(heard) > 0 {
			t.Errorf("the warnings are %q", heard)
		}
	}
	expectStored := func(want string) {
		t.Helper()
		var got []string
		list, err := stored.resource(schemas.All()[0]).Namespace(namespace).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range list.Items {
			value, _, _ := unstructured.NestedString(o.Object, "spec", "value")
			got = append(got, o.GetName()+"="+value)
		}
		slices.Sort(got)
		if got := strings.Join(got, " "); got != want {
			t.Errorf("stored is %q, want %q", got, want)
		}
	}
	expectWarned := func(err error, want ...string) {
		t.Helper()
		if err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff(want, warnings.take()); diff != "" {
			t.Errorf("the warnings differ (-want +got):\n%s", diff)
		}
	}

	_, err := objects.Create(t.Context(), limitObject("v1", "a", "bad"), metav1.CreateOptions{})
	expectRefused("a", err)
	_, err = aliased.Create(t.Context(), limitObject("v1beta1", "a", "bad"), metav1.CreateOptions{})
	expectRefused("a", err)
	expectStored("")
	_, err = objects.Create(t.Context(), limitObject("v1", "a", "odd"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	expectWarned(err, "Limit "+namespace+"/a: spec.value: is odd")
	expectStored("")
	_, err = objects.Create(t.Context(), limitObject("v1", "a", "odd"), metav1.CreateOptions{})
	expectWarned(err, "Limit "+namespace+"/a: spec.value: is odd")
	expectStored("a=odd")

	patch := func(value string) error {
		_, err := objects.Patch(t.Context(), "a", types.MergePatchType, []byte(`{"spec":{"value":"`+value+`"}}`), metav1.PatchOptions{})
		return err
	}
	expectRefused("a", patch("bad"))
	expectWarned(patch("good"))
	expectStored("a=good")

	generated := limitObject("v1beta1", "", "bad")
	generated.SetGenerateName("b-")
	_, err = aliased.Create(t.Context(), generated, metav1.CreateOptions{})
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "Limit "+namespace+"/b-") {
		t.Errorf("a generated name: %v", err)
	}
	warnings.take()
	expectWarned(objects.Delete(t.Context(), "a", metav1.DeleteOptions{}))
	expectStored("")
}

// TestAdmissionOfStored: an object that was stored before validation can get a status, and can be
// deleted, finalizers included.
func TestAdmissionOfStored(t *testing.T) {
	const name = "old"
	server, schemas, _, namespace, _ := serveLimits(t, webhookGroup)
	config := restConfig(server.Config())
	objects := resourceOf(t, config, "v1", namespace)
	old := limitObject("v1", name, "bad")
	old.SetFinalizers([]string{"example.com/wait"})
	if _, err := objects.Create(t.Context(), old, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	serveWebhook(t, server, kube.NewAdmissionHandler(schemas), namespace, "v1")
	eventually(t, "the webhook is asked", func() bool {
		_, err := objects.Create(t.Context(), limitObject("v1", "first", "bad"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return apierrors.IsInvalid(err)
	})
	patch := func(patch string, subresources ...string) error {
		_, err := objects.Patch(t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}, subresources...)
		return err
	}
	if err := patch(`{"metadata":{"labels":{"a":"b"}}}`); !apierrors.IsInvalid(err) {
		t.Errorf("an update that leaves it invalid: %v", err)
	}
	if err := patch(`{"status":{"said":"it is invalid"}}`, "status"); err != nil {
		t.Errorf("its status: %v", err)
	}
	if err := objects.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Errorf("its delete: %v", err)
	}
	if err := patch(`{"metadata":{"finalizers":null}}`); err != nil {
		t.Errorf("its finalizer: %v", err)
	}
	if _, err := objects.Get(t.Context(), name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("it is still there: %v", err)
	}
}

func resourceOf(t *testing.T, config *rest.Config, version, namespace string) dynamic.ResourceInterface {
	t.Helper()
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client.Resource(apischema.GroupVersionResource{Group: webhookGroup, Version: version, Resource: "limits"}).Namespace(namespace)
}
