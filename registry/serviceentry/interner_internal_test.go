// SPDX-License-Identifier: Apache-2.0

package serviceentry

import (
	"reflect"
	"testing"

	"github.com/pilotkit/pilotkit/registry"
)

// TestInternerTellsApart: attributes that differ in any one field are two copies, each
// with what was asked for; equal ones are one.
func TestInternerTellsApart(t *testing.T) {
	t.Parallel()
	n := newInterner()
	drafts := []draft{{}, {identity: spiffe{trustDomain: "a"}}, {identity: spiffe{namespace: "a"}}, {identity: spiffe{account: "a"}}}
	for i := range reflect.TypeFor[registry.EndpointAttributes]().NumField() {
		var d draft
		switch f := reflect.ValueOf(&d.EndpointAttributes).Elem().Field(i); f.Kind() {
		case reflect.String:
			f.SetString("a")
		case reflect.Bool:
			f.SetBool(true)
		case reflect.Uint32:
			f.SetUint(7)
		case reflect.Map:
			d.metadata = map[string]string{"a": ""}
		default:
			t.Fatalf("field %d is a %s", i, f.Kind())
		}
		drafts = append(drafts, d)
	}
	// Labels of which the texts, put together carelessly, are the same.
	for _, labels := range []registry.Labels{{"a": "b"}, {"a": "b", "c": ""}, {"a": "", "b": ""}, {"ab": ""}, {"b": "a"}} {
		drafts = append(drafts, draft{metadata: labels})
	}
	seen := map[*interned]int{}
	for i := range drafts {
		e := n.acquire(&drafts[i])
		if j, known := seen[e]; known {
			t.Errorf("drafts %d and %d have one copy", j, i)
		}
		seen[e] = i
		want := drafts[i].build(drafts[i].buildLabels())
		if !e.Equal(&want) {
			t.Errorf("draft %d: the copy is %+v, want %+v", i, e.EndpointAttributes, want)
		}
		if n.acquire(&drafts[i]) != e {
			t.Errorf("draft %d has two copies", i)
		}
	}
	for e := range seen {
		n.release(e)
		n.release(e)
	}
	if len(n.attributes)+len(n.labels) > 0 {
		t.Errorf("%d attributes and %d labels are left", len(n.attributes), len(n.labels))
	}
}
