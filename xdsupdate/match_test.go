// SPDX-License-Identifier: Apache-2.0

package xdsupdate_test

import (
	"reflect"
	"testing"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// TestEveryFieldMatters: a change of any field of an endpoint, or of its
// attributes, is pushed; also of fields that are added to the model later.
func TestEveryFieldMatters(t *testing.T) {
	update := func(e *registry.Endpoint) xdsupdate.PushType {
		index := xdsupdate.NewEndpointIndex()
		index.UpdateServiceEndpoints(shardOf("c1"), host, ns, eps(ep("1.1.1.1")))
		return index.UpdateServiceEndpoints(shardOf("c1"), host, ns, eps(e))
	}
	if got := update(ep("1.1.1.1")); got != no {
		t.Errorf("nothing changed: %v, want %v", got, no)
	}
	endpoint, attributes := reflect.TypeFor[registry.Endpoint](), reflect.TypeFor[registry.EndpointAttributes]()
	for i := range endpoint.NumField() {
		if endpoint.Field(i).Name == "Shared" {
			continue
		}
		e := ep("1.1.1.1")
		change(t, reflect.ValueOf(e).Elem().Field(i))
		if got := update(e); got != incremental {
			t.Errorf("%s changed: %v, want %v", endpoint.Field(i).Name, got, incremental)
		}
	}
	for i := range attributes.NumField() {
		e := ep("1.1.1.1")
		change(t, reflect.ValueOf(e.Shared).Elem().Field(i))
		if got := update(e); got == no {
			t.Errorf("%s changed: %v", attributes.Field(i).Name, got)
		}
	}
}

func change(t *testing.T, v reflect.Value) {
	t.Helper()
	switch v.Kind() {
	case reflect.String:
		v.SetString(v.String() + "x")
	case reflect.Bool:
		v.SetBool(!v.Bool())
	case reflect.Uint8, reflect.Uint32:
		v.SetUint(v.Uint() + 1)
	case reflect.Slice:
		v.Set(reflect.ValueOf([]string{"9.9.9.9"}))
	case reflect.Map:
		v.Set(reflect.ValueOf(registry.Labels{"changed": "yes"}))
	default:
		t.Fatalf("a field of kind %v is not known here", v.Kind())
	}
}
