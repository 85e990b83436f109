// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"errors"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/kube"
	"github.com/pilotkit/pilotkit/configstore/manifest"
)

// putStatus replaces the status of an object by anything.
func putStatus(t *testing.T, objects dynamic.ResourceInterface, name string, status any) {
	t.Helper()
	u, err := objects.Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	u.Object["status"] = status
	if _, err := objects.UpdateStatus(t.Context(), u, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// TestBadStatus: a status that cannot be decoded is a warning, and the spec is published.
func TestBadStatus(t *testing.T) {
	c, o, objects := serveFutureEntries(t, "badstatus.example.com")
	kind, ns := o.GroupVersionKind, o.Namespace
	putStatus(t, objects, "a", map[string]any{"addresses": "no list"})
	// It follows the warnings for two unknown fields.
	eventually(t, "there is a warning", func() bool { return len(c.Warnings()) == 3 })
	if w := c.Warnings()[2]; !errors.Is(w, manifest.ErrMalformed) || !strings.Contains(w.Error(), "status.addresses") || w.Object != o.Key() {
		t.Errorf("the warning is %v", w)
	}
	hosts := func() string {
		return strings.Join(c.Get(kind, "a", ns).Spec.(*networking.ServiceEntry).Hosts, " ")
	}
	o.Spec.(*networking.ServiceEntry).Hosts = []string{"b.example.com"}
	o.Status, o.ResourceVersion = nil, ""
	await(t, c, o, update(t, c, o)) // It is read before by the writer, too.
	if got := c.Get(kind, "a", ns); got.Status != nil || hosts() != "b.example.com" {
		t.Errorf("hosts are %s, and the status is %v", hosts(), got.Status)
	}
	expectErrors(t, c)
	// An invalid spec is an error, and its warnings go.
	putSpec(t, objects, kind, "a", `{"hosts":"no list"}`)
	expectErrors(t, c, "a")
	if w := c.Warnings(); len(w) > 0 || hosts() != "b.example.com" {
		t.Errorf("hosts are %s, and warnings %v", hosts(), w)
	}
	putSpec(t, objects, kind, "a", `{"hosts":["c.example.com"],"resolution":"DNS","ports":[{"number":80,"name":"http"}]}`)
	expectErrors(t, c)
	putStatus(t, objects, "a", map[string]any{})
	eventually(t, "nothing is wrong any more", func() bool { return len(c.Warnings()) == 0 && hosts() == "c.example.com" })
}

// TestBadStatusIsNoCondition: the conditions of a StatusWriter concern the spec only.
func TestBadStatusIsNoCondition(t *testing.T) {
	t.Parallel()
	server := apiserver.Server(t)
	schema := serviceEntries(t)
	schema.GroupVersionKind.Group = "badcondition.example.com"
	schemas := configstore.NewSchemasBuilder().MustAdd(schema).Build()
	server.ApplyCRDs(t, crdsOf(schemas))
	ns := server.Namespace(t)
	l := newLive(t, restConfig(server.Config()), schemas)
	objects := l.resource(schema).Namespace(ns)
	putSpec(t, objects, schema.GroupVersionKind, "a", `{"hosts":["a.example.com"],"resolution":"DNS","ports":[{"number":80,"name":"http"}]}`)
	putStatus(t, objects, "a", map[string]any{"addresses": "no list"})
	startPlane(t, server, schemas, kube.StatusOptions{})
	expectStatus(t, l, ns, "a", "1", "Accepted=True Valid ")
}
