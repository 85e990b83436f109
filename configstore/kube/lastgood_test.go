// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/configstore/kube"
)

// TestLastGoodState: an object that cannot be decoded or is invalid keeps its last good state, and
// is an error until it is valid or deleted.
func TestLastGoodState(t *testing.T) {
	t.Parallel()
	server := apiserver.Server(t)
	istioKinds := serviceEntries(t)
	server.ApplyCRDs(t, []byte(strings.ReplaceAll(crdOf(istioKinds), istioKinds.GroupVersionKind.Group, "good.example.com")))
	istioKinds.GroupVersionKind.Group = "good.example.com"
	kind := istioKinds.GroupVersionKind
	schemas := configstore.NewSchemasBuilder().MustAdd(istioKinds).Build()
	ns := server.Namespace(t)
	resource := newLive(t, restConfig(server.Config()), schemas).resource(istioKinds).Namespace(ns)
	put := func(name, spec string) { t.Helper(); putSpec(t, resource, kind, name, spec) }
	const good = `{"hosts":["a.example.com"],"ports":[{"number":80,"name":"http","protocol":"HTTP"}],"resolution":"DNS","hostsBeyond":[1]}`
	put("a", good)
	put("broken", `{"hosts":"a string"}`)
	c := newCache(t, restConfig(server.Config()), schemas, kube.Options{})
	r := record(c, kind)
	runSynced(t, c)
	r.Expect(t, "add ServiceEntry "+ns+"/a")
	expectErrors(t, c, "broken")

	put("a", `{"hosts":{"no":"list"}}`)
	expectErrors(t, c, "a", "broken")
	if c.Get(kind, "a", ns) == nil {
		t.Error("the last good state is gone")
	}
	put("a", `{"hosts":[],"ports":[]}`) // decodes, and is invalid
	eventually(t, "the error is that of the validation", func() bool { return errors.Is(c.Errors()[0], configstore.ErrInvalid) })
	put("a", good)
	expectErrors(t, c, "broken")
	put("broken", good)
	expectErrors(t, c)
	r.Expect(t, "update ServiceEntry "+ns+"/a", "add ServiceEntry "+ns+"/broken")
	put("a", `{"hosts":1}`)
	expectErrors(t, c, "a")
	if err := resource.Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	expectErrors(t, c)
	r.Expect(t, "delete ServiceEntry "+ns+"/a")
}

// putSpec creates or replaces an object with a spec of any JSON, even if its status is written
// concurrently.
func putSpec(t *testing.T, resource dynamic.ResourceInterface, kind configstore.GroupVersionKind, name, spec string) {
	t.Helper()
	u := &unstructured.Unstructured{}
	text := fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{"name":%q},"spec":%s}`, kind.APIVersion(), kind.Kind, name, spec)
	if err := u.UnmarshalJSON([]byte(text)); err != nil {
		t.Fatal(err)
	}
	for {
		var err error
		if old, missing := resource.Get(t.Context(), name, metav1.GetOptions{}); missing == nil {
			u.SetResourceVersion(old.GetResourceVersion())
			_, err = resource.Update(t.Context(), u, metav1.UpdateOptions{})
		} else {
			_, err = resource.Create(t.Context(), u, metav1.CreateOptions{})
		}
		if err == nil {
			return
		}
		if !apierrors.IsConflict(err) {
			t.Fatal(err)
		}
	}
}

// expectErrors waits until exactly these objects have errors.
func expectErrors(t *testing.T, c *kube.Cache, names ...string) {
	t.Helper()
	eventually(t, fmt.Sprintf("errors of %v", names), func() bool {
		var got []string
		for _, e := range c.Errors() {
			got = append(got, e.Object.Name)
		}
		return fmt.Sprint(got) == fmt.Sprint(names)
	})
}

// serviceEntries returns the schema of ServiceEntries.
func serviceEntries(t *testing.T) configstore.Schema {
	t.Helper()
	schema, ok := istio.Schemas().Find(istio.ServiceEntry)
	if !ok {
		t.Fatal("there is no schema of ServiceEntries")
	}
	return schema
}
