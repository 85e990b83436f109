// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"net/http"
	"strings"
	"testing"

	"go.uber.org/atomic"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/kube"
)

// TestHasSynced: a cache has synced when all kinds that the server has were listed,
// and not before.
func TestHasSynced(t *testing.T) {
	t.Parallel()
	server := apiserver.Server(t)
	quick, slow, absent := limit("quick.example.com"), limit("slow.example.com"), limit("absent.example.com")
	present := configstore.NewSchemasBuilder().MustAdd(quick).MustAdd(slow).Build()
	server.ApplyCRDs(t, crdsOf(present))
	ns := server.Namespace(t)
	writer := newCache(t, restConfig(server.Config()), present, kube.Options{})
	for _, s := range present.All() {
		create(t, writer, object(s.GroupVersionKind, ns, "a", "1"))
	}
	config, arrived, proceed := restConfig(server.Config()), make(chan struct{}, 100), make(chan struct{})
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			if strings.Contains(request.URL.Path, "slow.example.com") {
				arrived <- struct{}{}
				<-proceed
			}
			return next.RoundTrip(request)
		})
	})
	c := newCache(t, config, configstore.NewSchemasBuilder().MustAdd(quick).MustAdd(slow).MustAdd(absent).Build(), kube.Options{})
	run(t, c)
	<-arrived
	eventually(t, "the kind that was listed can be read", func() bool { return c.Get(quick.GroupVersionKind, "a", ns) != nil })
	if c.HasSynced() {
		t.Error("it has synced without one kind")
	}
	close(proceed)
	eventually(t, "it has synced", c.HasSynced)
	if c.Get(slow.GroupVersionKind, "a", ns) == nil {
		t.Error("it has synced without an object of the slow kind")
	}
}

// TestDecodedOnce: an object is decoded once per change, regardless of the number of reads and
// lists.
func TestDecodedOnce(t *testing.T) {
	t.Parallel()
	server := apiserver.Server(t)
	schema := limit("decoded.example.com")
	kind := schema.GroupVersionKind
	ns, other := server.Namespace(t), server.Namespace(t)
	var decoded atomic.Int32
	validate := schema.Validate
	schema.Validate = func(c configstore.Config) (warnings, violations []configstore.Violation) {
		decoded.Inc()
		return validate(c)
	}
	schemas := configstore.NewSchemasBuilder().MustAdd(schema).Build()
	server.ApplyCRDs(t, crdsOf(schemas))
	defer server.DeleteCRD(t, "limits.decoded.example.com")
	writer := newCache(t, restConfig(server.Config()), limits("decoded.example.com"), kube.Options{})
	for _, name := range []string{"a", "b", "c"} {
		create(t, writer, object(kind, ns, name, "1"))
	}
	create(t, writer, object(kind, other, "d", "1"))
	c := newCache(t, restConfig(server.Config()), schemas, kube.Options{Namespaces: func(namespace string) bool { return namespace == ns }})
	runSynced(t, c)
	expect := func(n int32) {
		t.Helper()
		if got := decoded.Load(); got != n {
			t.Errorf("objects were decoded %d times, want %d", got, n)
		}
	}
	expect(3)
	first := c.Get(kind, "a", ns)
	if again := c.Get(kind, "a", ns); again.Spec != first.Spec {
		t.Error("two reads give two objects")
	}
	expect(3)
	a := object(kind, ns, "a", "2")
	await(t, c, a, update(t, writer, a))
	expect(4)
	c.SelectNamespaces(nil) // All objects are listed again.
	eventually(t, "the other namespace is in", func() bool { return c.Get(kind, "d", other) != nil })
	expect(5)
}

// TestForbiddenLater: a kind that becomes forbidden keeps its objects, and is an error.
func TestForbiddenLater(t *testing.T) {
	t.Parallel()
	server := apiserver.Server(t)
	schemas := limits("later.example.com")
	kind := schemas.All()[0].GroupVersionKind
	server.ApplyCRDs(t, crdsOf(schemas))
	ns := server.Namespace(t)
	create(t, newCache(t, restConfig(server.Config()), schemas, kube.Options{}), object(kind, ns, "a", "1"))
	allow(t, server, "visitor", "apiextensions.k8s.io/customresourcedefinitions")
	allow(t, server, "visitor-more", "later.example.com/limits")
	bind(t, server, "visitor", "visitor-more")
	visitor := newLive(t, restConfig(server.ConfigFor("visitor")), schemas)
	eventually(t, "the rights count", func() bool {
		_, err := visitor.state(t.Context())
		return err == nil
	})
	front := server.Front(t)
	config := restConfig(front.Config())
	config.Impersonate = restConfig(server.ConfigFor("visitor")).Impersonate
	c := newCache(t, config, schemas, kube.Options{})
	runSynced(t, c)
	if c.Get(kind, "a", ns) == nil {
		t.Fatalf("the kind cannot be read: %v", c.Errors())
	}
	if err := clientset(t, server).RbacV1().ClusterRoleBindings().Delete(t.Context(), "visitor-is-visitor-more", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the server has taken the right away", func() bool {
		_, err := visitor.state(t.Context())
		return apierrors.IsForbidden(err)
	})
	front.Cut() // The server looks at rights when a watch begins.
	eventually(t, "the kind is an error", func() bool {
		errs := c.Errors()
		return len(errs) == 1 && errs[0].Object.Kind == kind && apierrors.IsForbidden(errs[0].Err)
	})
	if c.Get(kind, "a", ns) == nil {
		t.Error("what was read is gone")
	}
}
