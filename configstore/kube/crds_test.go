// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"errors"
	"testing"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/kube"
)

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
