// SPDX-License-Identifier: Apache-2.0

package aggregate

import (
	"strconv"
	"testing"

	"github.com/pilotkit/pilotkit/configstore"
)

// Namespaces that come and go leave nothing behind, listed or not.
func TestViewForgetsNamespaces(t *testing.T) {
	v := newView(configstore.GroupVersionKind{Version: "v1", Kind: "Widget"})
	for i := range 100 {
		k := key{"n" + strconv.Itoa(i), "x"}
		c := &configstore.Config{Meta: configstore.Meta{GroupVersionKind: v.kind, Namespace: k.namespace, Name: k.name}}
		v.set(0, k, c)
		if i%2 == 0 {
			v.list(k.namespace)
		}
		v.set(1, k, c) // is shadowed
		d := *c
		d.ResourceVersion = "2"
		v.set(0, k, &d)
		if got := v.list(k.namespace); len(got) != 1 || got[0] != &d {
			t.Fatalf("list(%s) = %v, want the object", k.namespace, got)
		}
		v.set(0, k, nil)
		if got := v.list(k.namespace); len(got) != 1 || got[0] != c {
			t.Fatalf("list(%s) = %v, want the one that was shadowed", k.namespace, got)
		}
		v.set(1, k, nil)
		if got, ok := v.fresh(k.namespace); got != nil || !ok {
			t.Errorf("fresh(%s) = %v, %t, want none without work", k.namespace, got, ok)
		}
	}
	if n := v.namespaces.Len(); n != 0 {
		t.Errorf("%d namespaces without objects are kept", n)
	}
}
