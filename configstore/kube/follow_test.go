// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"

	"google.golang.org/protobuf/types/known/structpb"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/configstore/kube"
	"github.com/pilotkit/pilotkit/configstore/storetest"
	"github.com/pilotkit/pilotkit/internal/kubetest"
)

// limits returns the schemas of one kind in a group of the test's own.
func limits(group string) configstore.Schemas {
	return configstore.NewSchemasBuilder().MustAdd(limit(group)).Build()
}

func limit(group string) configstore.Schema {
	return configstore.Schema{
		GroupVersionKind: configstore.GroupVersionKind{Group: group, Version: "v1", Kind: "Limit"},
		Aliases:          []string{"v1beta1"}, Plural: "limits",
		Spec: &structpb.Struct{}, Status: &structpb.Struct{}, Validate: noBadValue,
	}
}

func noBadValue(c configstore.Config) (warnings, violations []configstore.Violation) {
	if spec, ok := c.Spec.(*structpb.Struct); ok && spec.GetFields()["value"].GetStringValue() == "bad" {
		violations = append(violations, configstore.Violation{Field: "spec.value", Message: "is bad"})
	}
	return nil, violations
}

func object(kind configstore.GroupVersionKind, namespace, name, value string) configstore.Config {
	return configstore.Config{
		Meta: configstore.Meta{GroupVersionKind: kind, Namespace: namespace, Name: name},
		Spec: &structpb.Struct{Fields: map[string]*structpb.Value{"value": structpb.NewStringValue(value)}},
	}
}

func value(c *configstore.Config) string {
	if c == nil {
		return ""
	}
	spec, _ := c.Spec.(*structpb.Struct)
	return spec.GetFields()["value"].GetStringValue()
}

func create(tb testing.TB, s configstore.ConfigStore, c configstore.Config) string {
	tb.Helper()
	revision, err := s.Create(c)
	if err != nil {
		tb.Fatal(err)
	}
	return revision
}

func update(tb testing.TB, s configstore.ConfigStore, c configstore.Config) string {
	tb.Helper()
	revision, err := s.Update(c)
	if err != nil {
		tb.Fatal(err)
	}
	return revision
}

// await waits until the cache shows a write.
func await(tb testing.TB, c *kube.Cache, object configstore.Config, revision string) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), patience)
	defer cancel()
	if err := c.Await(ctx, object.Key(), revision); err != nil {
		tb.Fatalf("%v; errors: %v", err, c.Errors())
	}
}

func record(c configstore.ConfigStoreCache, kind configstore.GroupVersionKind) *storetest.Recorder {
	r := &storetest.Recorder{}
	c.RegisterEventHandler(kind, r.Handle)
	return r
}

// crdWith returns the CRD of a schema, under some versions.
func crdWith(s configstore.Schema, versions ...string) []byte {
	s.GroupVersionKind.Version, s.Aliases = versions[0], versions[1:]
	return []byte(crdOf(s))
}

// TestKinds: CRDs come, change their versions, go with their objects, and come
// back.
func TestKinds(t *testing.T) {
	server := apiserver.Server(t)
	schema := limit("kinds.example.com")
	kind := schema.GroupVersionKind
	schemas := configstore.NewSchemasBuilder().MustAdd(schema).Build()
	c := newCache(t, server.Config(), schemas, kube.Options{})
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
	if errs := c.Errors(); len(errs) > 0 {
		t.Errorf("errors remain: %v", errs)
	}
}

// TestSelection: what a filter takes in or out is an add or a delete.
func TestSelection(t *testing.T) {
	server := apiserver.Server(t)
	schemas := limits("selection.example.com")
	kind := schemas.All()[0].GroupVersionKind
	server.ApplyCRDs(t, crdsOf(schemas))
	ns, other := server.Namespace(t), server.Namespace(t)
	all := newCache(t, server.Config(), schemas, kube.Options{})
	runSynced(t, all)
	for _, c := range []configstore.Config{
		object(kind, ns, "a", "1"), labelled(object(kind, ns, "b", "1"), "canary"), labelled(object(kind, ns, "c", "1"), "stable"), object(kind, other, "d", "1"),
	} {
		create(t, all, c)
	}
	c := newCache(t, server.Config(), schemas, kube.Options{
		Revision: "canary", Domain: "cluster.local", Namespaces: func(namespace string) bool { return namespace == ns },
	})
	r := record(c, kind)
	runSynced(t, c)
	r.Expect(t, "add Limit "+ns+"/a", "add Limit "+ns+"/b")
	if got := c.Get(kind, "a", ns).Domain; got != "cluster.local" {
		t.Errorf("Domain = %q", got)
	}

	update(t, all, labelled(object(kind, ns, "a", "2"), "stable"))
	r.Expect(t, "delete Limit "+ns+"/a")
	update(t, all, labelled(object(kind, ns, "c", "2"), "canary"))
	r.Expect(t, "add Limit "+ns+"/c")
	update(t, all, object(kind, ns, "b", "2"))
	r.Expect(t, "update Limit "+ns+"/b")

	c.SelectNamespaces(func(namespace string) bool { return namespace == other })
	eventually(t, "the other namespace is in", func() bool { return c.Get(kind, "d", other) != nil })
	want := []string{"delete Limit " + ns + "/b", "delete Limit " + ns + "/c"}
	if ns < other {
		want = append(want, "add Limit "+other+"/d")
	} else {
		want = append([]string{"add Limit " + other + "/d"}, want...)
	}
	r.Expect(t, want...)
	c.SelectNamespaces(nil)
	eventually(t, "all namespaces are in", func() bool { return len(c.List(kind, "")) == 3 })
}

func labelled(c configstore.Config, revision string) configstore.Config {
	c.Labels = map[string]string{"istio.io/rev": revision}
	return c
}

// TestLastGoodState: what cannot be decoded or is invalid leaves the object as it
// was, and is an error as long as it is there.
func TestLastGoodState(t *testing.T) {
	server := apiserver.Server(t)
	istioKinds := serviceEntries(t)
	server.ApplyCRDs(t, []byte(strings.ReplaceAll(crdOf(istioKinds), istioKinds.GroupVersionKind.Group, "good.example.com")))
	istioKinds.GroupVersionKind.Group = "good.example.com"
	kind := istioKinds.GroupVersionKind
	schemas := configstore.NewSchemasBuilder().MustAdd(istioKinds).Build()
	ns := server.Namespace(t)
	entries := newLive(t, server.Config(), schemas).resource(istioKinds).Namespace(ns)
	put := func(name, spec string) {
		t.Helper()
		u := &unstructured.Unstructured{}
		text := fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{"name":%q},"spec":%s}`, kind.APIVersion(), kind.Kind, name, spec)
		if err := u.UnmarshalJSON([]byte(text)); err != nil {
			t.Fatal(err)
		}
		if old, err := entries.Get(t.Context(), name, metav1.GetOptions{}); err == nil {
			u.SetResourceVersion(old.GetResourceVersion())
			if _, err := entries.Update(t.Context(), u, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
			return
		}
		if _, err := entries.Create(t.Context(), u, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	const good = `{"hosts":["a.example.com"],"ports":[{"number":80,"name":"http","protocol":"HTTP"}],"resolution":"DNS","hostsBeyond":[1]}`
	put("a", good)
	put("broken", `{"hosts":"a string"}`)
	c := newCache(t, server.Config(), schemas, kube.Options{})
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
	if err := entries.Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	expectErrors(t, c)
	r.Expect(t, "delete ServiceEntry "+ns+"/a")
}

// expectErrors waits until the errors are those of these objects.
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

// TestForbidden: a kind that access control refuses hurts no other.
func TestForbidden(t *testing.T) {
	server := apiserver.Server(t)
	allowed, refused := limit("allowed.example.com"), limit("refused.example.com")
	schemas := configstore.NewSchemasBuilder().MustAdd(allowed).MustAdd(refused).Build()
	server.ApplyCRDs(t, crdsOf(schemas))
	ns := server.Namespace(t)
	admin := newCache(t, server.Config(), schemas, kube.Options{})
	create(t, admin, object(allowed.GroupVersionKind, ns, "a", "1"))
	create(t, admin, object(refused.GroupVersionKind, ns, "a", "1"))

	for _, user := range []struct {
		name  string
		rules []string
		// errors are the groups of the kinds in Errors.
		errors string
	}{
		{"reader", []string{"apiextensions.k8s.io/customresourcedefinitions", "allowed.example.com/limits"}, "[refused.example.com]"},
		{"blind", []string{"allowed.example.com/limits"}, "[apiextensions.k8s.io refused.example.com]"},
	} {
		t.Run(user.name, func(t *testing.T) {
			allow(t, server, user.name, user.rules...)
			c := newCache(t, server.ConfigFor(user.name), schemas, kube.Options{})
			runSynced(t, c)
			eventually(t, "the kind that is allowed is there", func() bool { return c.Get(allowed.GroupVersionKind, "a", ns) != nil })
			if c.Get(refused.GroupVersionKind, "a", ns) != nil {
				t.Error("the kind that is refused can be read")
			}
			var groups []string
			for _, e := range c.Errors() {
				groups = append(groups, e.Object.Kind.Group)
				if !apierrors.IsForbidden(errors.Unwrap(e)) {
					t.Errorf("%v is not forbidden", e)
				}
			}
			if fmt.Sprint(groups) != user.errors {
				t.Errorf("errors of %v, want %s", groups, user.errors)
			}
			if _, err := c.Update(object(allowed.GroupVersionKind, ns, "a", "2")); !isForbidden(err) {
				t.Errorf("a write that is forbidden = %v", err)
			}
			allow(t, server, user.name+"-more", "refused.example.com/limits", "apiextensions.k8s.io/customresourcedefinitions")
			bind(t, server, user.name, user.name+"-more")
			eventually(t, "the other kind is there once it is allowed", func() bool {
				return c.Get(refused.GroupVersionKind, "a", ns) != nil && len(c.Errors()) == 0
			})
		})
	}
}

func isForbidden(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && status.Status().Reason == metav1.StatusReasonForbidden
}

// load writes objects of its own until the returned function is called.
func load(t *testing.T, s configstore.ConfigStore, kind configstore.GroupVersionKind, namespace string) (end func()) {
	t.Helper()
	stop := make(chan struct{})
	var writers sync.WaitGroup
	for w := range 4 {
		writers.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				name := fmt.Sprintf("load-%d-%d", w, i%7)
				switch _, err := s.Create(object(kind, namespace, name, fmt.Sprint(i))); {
				case err == nil:
				case i%3 == 0:
					_ = s.Delete(kind, name, namespace, nil) // The server may be away.
				default:
					_, _ = s.Update(object(kind, namespace, name, fmt.Sprint(i))) // The same.
				}
			}
		})
	}
	return func() {
		close(stop)
		writers.Wait()
	}
}

// replica is what a handler knows from events alone. It fails the test if they do
// not fit together.
type replica struct {
	t       *testing.T
	mu      sync.Mutex
	objects map[string]configstore.Config
}

func (r *replica) handle(old, curr configstore.Config, event configstore.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := "limits " + curr.Namespace + "/" + curr.Name
	had, known := r.objects[key]
	switch {
	case event == configstore.EventAdd && known, event != configstore.EventAdd && !known:
		r.t.Errorf("%s of %s, which was known: %t", event, key, known)
	case event == configstore.EventUpdate && had.ResourceVersion != old.ResourceVersion:
		r.t.Errorf("update of %s from %s, known was %s", key, old.ResourceVersion, had.ResourceVersion)
	case event == configstore.EventUpdate && had.ResourceVersion == curr.ResourceVersion:
		r.t.Errorf("an update of %s to the same version", key)
	}
	if event == configstore.EventDelete {
		delete(r.objects, key)
	} else {
		r.objects[key] = curr
	}
}

func (r *replica) state() map[string]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	state := map[string]string{}
	for key, c := range r.objects {
		state[key] = c.ResourceVersion
	}
	return state
}

// expectConverged waits until the API server, the cache and the replica agree.
func expectConverged(t *testing.T, l *live, c *kube.Cache, r *replica) {
	t.Helper()
	want, err := l.state(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(want) == 0 {
		t.Error("there is nothing to agree about")
	}
	eventually(t, "the cache and its handlers have what the API server has", func() bool {
		return maps.Equal(want, shown(c)) && maps.Equal(want, r.state())
	})
}

// TestDisturbed: watches that break, a server that is slow, silent or killed, and
// revisions that are too old lose nothing and double nothing.
func TestDisturbed(t *testing.T) {
	server := kubetest.Start(t)
	schemas := limits("disturbed.example.com")
	kind := schemas.All()[0].GroupVersionKind
	server.ApplyCRDs(t, crdsOf(schemas))
	ns := server.Namespace(t)
	front := server.Front(t)
	writer := newCache(t, server.Config(), schemas, kube.Options{})
	l := newLive(t, server.Config(), schemas)
	c := newCache(t, front.Config(), schemas, kube.Options{})
	r := &replica{t: t, objects: map[string]configstore.Config{}}
	c.RegisterEventHandler(kind, r.handle)
	runSynced(t, c)
	create(t, writer, object(kind, ns, "steady", "1"))

	phase := func(name string, disturb func()) {
		t.Run(name, func(t *testing.T) {
			end := load(t, writer, kind, ns)
			disturb()
			end()
			expectConverged(t, l, c, r)
			eventually(t, "no error remains", func() bool { return len(c.Errors()) == 0 })
		})
	}
	changes := func(n uint64) {
		from := c.Revision()
		eventually(t, "changes arrive", func() bool { return c.Revision() >= from+n })
	}
	phase("Cut", func() {
		for range 10 {
			front.Cut()
			changes(5)
		}
	})
	phase("Slow", func() {
		front.Delay(100e6)
		changes(20)
		front.Delay(0)
	})
	phase("Killed", func() {
		changes(5)
		server.Stop()
		eventually(t, "the error is shown", func() bool { return len(c.Errors()) > 0 })
		if c.Get(kind, "steady", ns) == nil {
			t.Error("the state is gone with the server")
		}
		server.Restart(t)
		changes(5)
	})
	phase("TooOld", func() {
		front.Refuse(true)
		state, err := l.state(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		eventually(t, "the objects change meanwhile", func() bool {
			now, err := l.state(t.Context())
			return err == nil && !maps.Equal(state, now)
		})
		if err := writer.Delete(kind, "steady", ns, nil); err != nil {
			t.Fatal(err)
		}
		create(t, writer, object(kind, ns, "steady", "2"))
		server.Restart(t) // It forgets the revisions of before.
		front.Refuse(false)
		changes(1)
	})
	if got := value(c.Get(kind, "steady", ns)); got != "2" {
		t.Errorf("the object that was made anew has the value %q", got)
	}
}
