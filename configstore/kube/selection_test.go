// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"testing"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/kube"
)

// TestSelection: an object that enters or leaves the selection is an add or a delete.
func TestSelection(t *testing.T) {
	t.Parallel()
	server := apiserver.Server(t)
	schemas := limits("selection.example.com")
	kind := schemas.All()[0].GroupVersionKind
	server.ApplyCRDs(t, crdsOf(schemas))
	ns, other := server.Namespace(t), server.Namespace(t)
	all := newCache(t, restConfig(server.Config()), schemas, kube.Options{})
	runSynced(t, all)
	for _, c := range []configstore.Config{
		object(kind, ns, "a", "1"), labelled(object(kind, ns, "b", "1"), "canary"), labelled(object(kind, ns, "c", "1"), "stable"), object(kind, other, "d", "1"),
	} {
		create(t, all, c)
	}
	c := newCache(t, restConfig(server.Config()), schemas, kube.Options{
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
