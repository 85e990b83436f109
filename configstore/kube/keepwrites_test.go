// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1alpha3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/kube"
)

// serveFutureEntries returns an API server with a kind like ServiceEntry, whose CRD has more fields
// than the schema, a cache of it, and one object with unknown fields.
func serveFutureEntries(t *testing.T, group string) (c *kube.Cache, stored configstore.Config, objects dynamic.ResourceInterface) {
	t.Helper()
	server := apiserver.Server(t)
	schema := serviceEntries(t)
	schema.GroupVersionKind.Group = group
	schemas := configstore.NewSchemasBuilder().MustAdd(schema).Build()
	server.ApplyCRDs(t, crdsOf(schemas))
	ns := server.Namespace(t)
	objects = newLive(t, restConfig(server.Config()), schemas).resource(schema).Namespace(ns)
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON([]byte(`{"apiVersion":"` + schema.GroupVersionKind.APIVersion() + `","kind":"ServiceEntry",
		"metadata":{"name":"a","labels":{"l":"1"},"ownerReferences":[
			{"apiVersion":"v1","kind":"Pod","name":"p","uid":"u","controller":false,"blockOwnerDeletion":false}]},
		"spec":{"hosts":["a.example.com"],"location":"MESH_EXTERNAL","resolution":"DNS","futureField":{"x":1},
			"ports":[{"number":80,"name":"http","protocol":"HTTP","futurePort":2}]}}`)); err != nil {
		t.Fatal(err)
	}
	u, err := objects.Create(t.Context(), u, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	u.Object["status"] = map[string]any{"futureStatus": "s", "conditions": []any{
		map[string]any{"type": "Foreign", "status": "True", "futureCondition": "c"}, map[string]any{"type": "Other", "status": "False"},
	}}
	if _, err := objects.UpdateStatus(t.Context(), u, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	c = newCache(t, restConfig(server.Config()), schemas, kube.Options{})
	runSynced(t, c)
	eventually(t, "the object is there", func() bool {
		o := c.Get(schema.GroupVersionKind, "a", ns)
		return o != nil && o.Status != nil
	})
	got := *c.Get(schema.GroupVersionKind, "a", ns)
	got.Spec, got.Status = proto.Clone(got.Spec), proto.Clone(got.Status)
	got.OwnerReferences = slices.Clone(got.OwnerReferences)
	return c, got, objects
}

// parts returns the owners, the spec and the status of the object "a".
func parts(t *testing.T, objects dynamic.ResourceInterface) map[string]any {
	t.Helper()
	u, err := objects.Get(t.Context(), "a", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	owners, _, _ := unstructured.NestedFieldNoCopy(u.Object, "metadata", "ownerReferences")
	return map[string]any{"owners": owners, "spec": u.Object["spec"], "status": u.Object["status"]}
}

// TestUpdateKeepsUnknown: a write changes only the intended fields.
func TestUpdateKeepsUnknown(t *testing.T) {
	c, o, objects := serveFutureEntries(t, "keeps.example.com")
	want := parts(t, objects)
	o.Labels = map[string]string{"l": "2"}
	o.ResourceVersion = update(t, c, o)
	if diff := cmp.Diff(want, parts(t, objects)); diff != "" {
		t.Errorf("after a change of a label (-before +after):\n%s", diff)
	}
	spec := o.Spec.(*networking.ServiceEntry)
	spec.Hosts = []string{"b.example.com"}
	spec.Ports = append([]*networking.ServicePort{{Number: 443, Name: "tls", Protocol: "TLS"}}, spec.Ports...)
	o.OwnerReferences = append(o.OwnerReferences, configstore.OwnerReference{APIVersion: "v1", Kind: "Pod", Name: "q", UID: "v"})
	o.ResourceVersion = update(t, c, o)
	stored := want["spec"].(map[string]any)
	stored["hosts"] = []any{"b.example.com"}
	stored["ports"] = append([]any{map[string]any{"number": int64(443), "name": "tls", "protocol": "TLS"}}, stored["ports"].([]any)...)
	stored["location"] = nil
	got := parts(t, objects)
	got["spec"].(map[string]any)["location"] = nil // the default, MESH_EXTERNAL
	want["owners"] = append(want["owners"].([]any), map[string]any{"apiVersion": "v1", "kind": "Pod", "name": "q", "uid": "v"})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("after a change of the spec (-want +got):\n%s", diff)
	}
}

// TestUpdateStatusKeepsUnknown: the same for statuses. A condition that is missing in the new
// status is removed.
func TestUpdateStatusKeepsUnknown(t *testing.T) {
	c, o, objects := serveFutureEntries(t, "keepsstatus.example.com")
	status := o.Status.(*networking.ServiceEntryStatus)
	status.Conditions[0].Message = "new"
	status.Conditions = status.Conditions[:1]
	var err error
	if o.ResourceVersion, err = c.UpdateStatus(o); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"futureStatus": "s", "conditions": []any{
		map[string]any{"type": "Foreign", "status": "True", "futureCondition": "c", "message": "new"},
	}}
	if diff := cmp.Diff(want, parts(t, objects)["status"]); diff != "" {
		t.Errorf("the status (-want +got):\n%s", diff)
	}
	// also by Update
	status.Conditions[0].Message = "newer"
	update(t, c, o)
	want["conditions"].([]any)[0].(map[string]any)["message"] = "newer"
	if diff := cmp.Diff(want, parts(t, objects)["status"]); diff != "" {
		t.Errorf("the status (-want +got):\n%s", diff)
	}
}
