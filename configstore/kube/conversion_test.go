// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/kube"
	"github.com/pilotkit/pilotkit/internal/test/kubetest"
)

// review is an API server's request to a conversion webhook, and the response.
type review struct {
	APIVersion string          `json:"apiVersion"`
	Kind       string          `json:"kind"`
	Request    *reviewRequest  `json:"request,omitempty"`
	Response   *reviewResponse `json:"response,omitempty"`
}

type reviewRequest struct {
	UID     string           `json:"uid"`
	Version string           `json:"desiredAPIVersion"`
	Objects []map[string]any `json:"objects"`
}

type reviewResponse struct {
	UID       string           `json:"uid"`
	Result    metav1.Status    `json:"result"`
	Converted []map[string]any `json:"convertedObjects,omitempty"`
}

// converter is a conversion webhook. It changes the version, unless a test disturbs it.
type converter struct {
	server *httptest.Server

	mu sync.Mutex
	// disturb changes the response.
	disturb func(*reviewResponse)
	// silent is closed when it answers.
	silent chan struct{}
}

func newConverter(t *testing.T) *converter {
	t.Helper()
	c := &converter{disturb: func(*reviewResponse) {}, silent: make(chan struct{})}
	close(c.silent)
	c.server = httptest.NewTLSServer(c)
	t.Cleanup(c.server.Close)
	return c
}

// ServeHTTP implements http.Handler.
func (c *converter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var asked review
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil || asked.Request == nil {
		http.Error(w, "no review", http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	silent := c.silent
	c.mu.Unlock()
	<-silent
	c.mu.Lock()
	disturb := c.disturb
	c.mu.Unlock()
	response := &reviewResponse{UID: asked.Request.UID, Result: metav1.Status{Status: metav1.StatusSuccess}}
	for _, o := range asked.Request.Objects {
		o["apiVersion"] = asked.Request.Version
		response.Converted = append(response.Converted, o)
	}
	disturb(response)
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(&review{APIVersion: asked.APIVersion, Kind: asked.Kind, Response: response})
}

// crd returns the CRD of a schema that is stored under its alias and converted here.
func (c *converter) crd(t *testing.T, s configstore.Schema) []byte {
	t.Helper()
	var crd map[string]any
	if err := json.Unmarshal(crdWith(s, s.Aliases[0], s.GroupVersionKind.Version), &crd); err != nil {
		t.Fatal(err)
	}
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.server.Certificate().Raw})
	crd["spec"].(map[string]any)["conversion"] = map[string]any{
		"strategy": "Webhook",
		"webhook": map[string]any{
			"conversionReviewVersions": []string{"v1"},
			"clientConfig":             map[string]any{"url": c.server.URL, "caBundle": authority},
		},
	}
	data, err := json.Marshal(crd)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// disturbed changes its responses, or, with nil, withholds them, until mend is called.
func (c *converter) disturbed(disturb func(*reviewResponse)) (mend func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.disturb, c.silent = disturb, make(chan struct{})
	silent := c.silent
	if disturb != nil {
		close(silent)
	}
	return sync.OnceFunc(func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.disturb = func(*reviewResponse) {}
		if disturb == nil {
			close(silent)
		}
	})
}

// converted is a kind whose objects are stored under another version than the requested one.
type converted struct {
	*converter
	t         *testing.T
	schemas   configstore.Schemas
	kind      configstore.GroupVersionKind
	namespace string
	stored    dynamic.ResourceInterface
}

func newConverted(t *testing.T, server *kubetest.Server, group string) *converted {
	t.Helper()
	schema := limit(group)
	c := &converted{
		converter: newConverter(t), t: t, schemas: limits(group), kind: schema.GroupVersionKind, namespace: server.Namespace(t),
	}
	server.ApplyCRDs(t, c.crd(t, schema))
	c.stored = newLive(t, restConfig(server.Config()), c.schemas).client.Resource(apischema.GroupVersionResource{
		Group: group, Version: schema.Aliases[0], Resource: "limits",
	}).Namespace(c.namespace)
	return c
}

// put writes under the stored version, which takes no conversion.
func (c *converted) put(name, value string) {
	c.t.Helper()
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": c.kind.Group + "/v1beta1", "kind": "Limit",
		"metadata": map[string]any{"name": name}, "spec": map[string]any{"value": value},
	}}
	_, err := c.stored.Create(c.t.Context(), o, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		var old *unstructured.Unstructured
		if old, err = c.stored.Get(c.t.Context(), name, metav1.GetOptions{}); err == nil {
			o.SetResourceVersion(old.GetResourceVersion())
			_, err = c.stored.Update(c.t.Context(), o, metav1.UpdateOptions{})
		}
	}
	if err != nil {
		c.t.Fatal(err)
	}
}

// values returns the values in a cache.
func (c *converted) values(cache *kube.Cache) string {
	var out []string
	for _, o := range cache.List(c.kind, c.namespace) {
		out = append(out, o.Name+"="+value(o))
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

// TestConversion: no cached object is lost, regardless of the conversion webhook's response for one
// object, and all objects are read once the webhook works again. A cache that starts meanwhile has
// not synced, and reports the reason.
func TestConversion(t *testing.T) {
	server := apiserver.Server(t)
	for name, test := range map[string]struct {
		disturb func(*reviewResponse)
		err     string
	}{
		"fails": {func(r *reviewResponse) {
			r.Converted, r.Result = nil, metav1.Status{Status: metav1.StatusFailure, Message: "it cannot be converted"}
		}, "it cannot be converted"},
		"renames": {func(r *reviewResponse) {
			for _, o := range r.Converted {
				o["metadata"].(map[string]any)["name"] = "another"
			}
		}, "must have the same name"},
		"forgets": {func(r *reviewResponse) { r.Converted = nil }, "returned 0 objects"},
		"hangs":   {nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testConversion(t, server, name+".example.com", test.disturb, test.err)
		})
	}
}

func testConversion(t *testing.T, server *kubetest.Server, group string, disturb func(*reviewResponse), want string) {
	t.Helper()
	k := newConverted(t, server, group)
	defer server.DeleteCRD(t, "limits."+group)
	k.put("a", "1")
	k.put("b", "1")
	front := server.Front(t)
	c := newCache(t, restConfig(front.Config()), k.schemas, kube.Options{})
	runSynced(t, c)
	mend := k.disturbed(disturb)
	defer mend()
	k.put("a", "2")
	k.put("d", "2")
	front.Cut()
	streamed := newCache(t, restConfig(front.Config()), k.schemas, kube.Options{})
	listed := newCache(t, (&laggard{}).before(restConfig(front.Config())), k.schemas, kube.Options{})
	for _, late := range []*kube.Cache{streamed, listed} {
		run(t, late)
		eventually(t, "the kind is an error", func() bool {
			errs := late.Errors()
			return len(errs) == 1 && errs[0].Object.Kind == k.kind && (late == streamed || strings.Contains(errs[0].Error(), want))
		})
		if late.HasSynced() || k.values(late) != "" {
			t.Errorf("it has synced, with %s", k.values(late))
		}
	}
	if got := k.values(c); got != "a=1 b=1" {
		t.Errorf("the cache shows %s", got)
	}
	mend()
	for _, cache := range []*kube.Cache{c, streamed, listed} {
		eventually(t, "all is read", func() bool {
			return k.values(cache) == "a=2 b=1 d=2" && cache.HasSynced() && len(cache.Errors()) == 0
		})
	}
}
