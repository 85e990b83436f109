// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"errors"
	"net/http"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/kube"
	"github.com/pilotkit/pilotkit/internal/test/kubetest"
)

// crdWith returns the CRD of a schema, under some versions.
func crdWith(s configstore.Schema, versions ...string) []byte {
	s.GroupVersionKind.Version, s.Aliases = versions[0], versions[1:]
	return []byte(crdOf(s))
}

// TestKinds: CRDs are created, change their versions, are deleted with their objects, and are
// created again.
func TestKinds(t *testing.T) {
	t.Parallel()
	server := apiserver.Server(t)
	schema := limit("kinds.example.com")
	kind := schema.GroupVersionKind
	schemas := configstore.NewSchemasBuilder().MustAdd(schema).Build()
	c := newCache(t, restConfig(server.Config()), schemas, kube.Options{})
	r := record(c, kind)
	runSynced(t, c)
	a := object(kind, "default", "a", "1")
	if _, err := c.Create(a); !errors.Is(err, configstore.ErrUnknownKind) {
		t.Errorf("Create without a CRD = %v, want ErrUnknownKind", err)
	}
	if errs := c.Errors(); len(errs) > 0 {
		t.Errorf("a kind without a CRD is an error: %v", errs)
	}

	server.ApplyCRDs(t, crdWith(schema, "v1beta1")) // the alias only
	await(t, c, a, create(t, c, a))
	if got := c.Get(kind, "a", "default"); got.GroupVersionKind != kind {
		t.Errorf("the object has the kind %v, want %v", got.GroupVersionKind, kind)
	}
	r.Expect(t, "add Limit default/a")
	server.DeleteCRD(t, "limits.kinds.example.com")
	r.Expect(t, "delete Limit default/a")
	eventually(t, "the object is gone", func() bool { return c.Get(kind, "a", "default") == nil })

	server.ApplyCRDs(t, crdWith(schema, "v1", "v1beta1"))
	await(t, c, a, create(t, c, a))
	b := object(kind, "default", "b", "1")
	b.GroupVersionKind.Version = "v1beta1"
	await(t, c, b, create(t, c, b))
	r.Expect(t, "add Limit default/a", "add Limit default/b")
	server.DeleteCRD(t, "limits.kinds.example.com")
	eventually(t, "both are gone", func() bool { return len(c.List(kind, "")) == 0 })
	r.Expect(t, "delete Limit default/a", "delete Limit default/b")
	expectErrors(t, c)
}

// replaceCRD deletes a CRD with its objects, and creates it again with other objects.
func replaceCRD(t *testing.T, server *kubetest.Server, schema configstore.Schema, writer *kube.Cache, objects ...configstore.Config) {
	t.Helper()
	server.DeleteCRD(t, schema.Plural+"."+schema.GroupVersionKind.Group)
	server.ApplyCRDs(t, crdWith(schema, "v1", "v1beta1"))
	for _, o := range objects {
		create(t, writer, o)
	}
}

// TestRecreated: if a CRD is deleted and created again with objects, its former objects are
// removed, with and without a watch.
func TestRecreated(t *testing.T) {
	t.Parallel()
	server := apiserver.Server(t)
	schema := limit("recreated.example.com")
	kind := schema.GroupVersionKind
	schemas := configstore.NewSchemasBuilder().MustAdd(schema).Build()
	server.ApplyCRDs(t, crdsOf(schemas))
	defer server.DeleteCRD(t, "limits.recreated.example.com")
	writer := newCache(t, restConfig(server.Config()), schemas, kube.Options{})
	a, b, c := object(kind, "default", "a", "1"), object(kind, "default", "b", "1"), object(kind, "default", "c", "1")
	create(t, writer, a)
	create(t, writer, b)
	front := server.Front(t)
	watcher := newCache(t, restConfig(front.Config()), schemas, kube.Options{})
	rep := &replica{t: t, objects: map[string]configstore.Config{}}
	watcher.RegisterEventHandler(kind, rep.handle)
	runSynced(t, watcher)

	replaceCRD(t, server, schema, writer, a, c)
	eventually(t, "the new objects are there", func() bool {
		return watcher.Get(kind, "a", "default") != nil && watcher.Get(kind, "b", "default") == nil && watcher.Get(kind, "c", "default") != nil
	})
	expectConverged(t, newLive(t, restConfig(server.Config()), schemas), watcher, rep)

	front.Refuse(true)
	replaceCRD(t, server, schema, writer, a, b)
	front.Refuse(false)
	eventually(t, "the new objects are there", func() bool {
		return watcher.Get(kind, "b", "default") != nil && watcher.Get(kind, "c", "default") == nil
	})
	expectConverged(t, newLive(t, restConfig(server.Config()), schemas), watcher, rep)
}

// TestVersionChange: objects that are served under another version than before are the same
// objects, without events.
func TestVersionChange(t *testing.T) {
	t.Parallel()
	server := apiserver.Server(t)
	schema := limit("version.example.com")
	kind := schema.GroupVersionKind
	schemas := configstore.NewSchemasBuilder().MustAdd(schema).Build()
	server.ApplyCRDs(t, crdWith(schema, "v1beta1")) // the alias only
	defer server.DeleteCRD(t, "limits.version.example.com")
	var paths requests
	c := newCache(t, paths.count(restConfig(server.Config())), schemas, kube.Options{})
	r := record(c, kind)
	runSynced(t, c)
	a := object(kind, "default", "a", "1")
	await(t, c, a, create(t, c, a))
	r.Expect(t, "add Limit default/a")

	var crd unstructured.Unstructured
	if err := crd.UnmarshalJSON(crdWith(schema, "v1beta1", "v1")); err != nil {
		t.Fatal(err)
	}
	crds := newLive(t, restConfig(server.Config()), schemas).client.Resource(apischema.GroupVersionResource{
		Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
	})
	old, err := crds.Get(t.Context(), "limits.version.example.com", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	crd.SetResourceVersion(old.GetResourceVersion())
	if _, err := crds.Update(t.Context(), &crd, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the objects are read under the better version", func() bool { return paths.of(http.MethodGet, "/v1/limits") > 0 })
	b := object(kind, "default", "b", "1")
	await(t, c, b, create(t, c, b))
	r.Expect(t, "add Limit default/b")
}
