// SPDX-License-Identifier: Apache-2.0

package registry_test

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/pilotkit/pilotkit/registry"
)

// fields yields for each field of a struct a copy that differs only in that field. A new field of
// the struct must not be forgotten here.
func fields[T any](t *testing.T, v T) map[string]T {
	t.Helper()
	out := map[string]T{}
	for i := range reflect.TypeFor[T]().NumField() {
		changed := v
		f := reflect.ValueOf(&changed).Elem().Field(i)
		name := reflect.TypeFor[T]().Field(i).Name
		f.Set(other(t, name, f))
		out[name] = changed
	}
	return out
}

// other returns a value that is not equal to v.
func other(t *testing.T, name string, v reflect.Value) reflect.Value {
	t.Helper()
	out := reflect.New(v.Type()).Elem()
	switch v.Kind() {
	case reflect.String:
		out.SetString(v.String() + "x")
	case reflect.Bool:
		out.SetBool(!v.Bool())
	case reflect.Int:
		out.SetInt(v.Int() + 1)
	case reflect.Uint8, reflect.Uint32:
		out.SetUint(v.Uint() + 1)
	case reflect.Slice:
		return reflect.Append(reflect.AppendSlice(out, v), element(t, name, v.Type().Elem()))
	case reflect.Map:
		out.Set(reflect.MakeMap(v.Type()))
		key := reflect.New(v.Type().Key()).Elem()
		if key.Kind() == reflect.String {
			key.SetString("key")
		}
		out.SetMapIndex(key, element(t, name, v.Type().Elem()))
	case reflect.Pointer, reflect.Struct:
		return element(t, name, v.Type())
	default:
		t.Fatalf("field %s has kind %s", name, v.Kind())
	}
	return out
}

// element returns some value that is not zero.
func element(t *testing.T, name string, of reflect.Type) reflect.Value {
	t.Helper()
	for _, v := range []any{
		&registry.Port{Name: "x"}, &registry.EndpointAttributes{Namespace: "x"}, &registry.Endpoint{WorkloadName: "x"},
		time.Unix(1, 0),
		registry.ServiceAttributes{Name: "x"},
		[]string{"x"},
		"x", registry.Visibility("x"), uint32(1),
		&registry.KubernetesAttributes{Type: "x"},
		map[uint32]uint32{1: 1},
	} {
		if reflect.TypeOf(v) == of {
			return reflect.ValueOf(v)
		}
	}
	t.Fatalf("no value of type %s for %s", of, name)
	return reflect.Value{}
}

func checkEqual[T any](t *testing.T, v T, equal func(a, b *T) bool, ignored ...string) {
	t.Helper()
	same := v
	if !equal(&v, &same) {
		t.Errorf("%T does not equal itself", v)
	}
	for name, changed := range fields(t, v) {
		want := false
		for _, i := range ignored {
			want = want || i == name
		}
		if got := equal(&v, &changed); got != want {
			t.Errorf("%T with another %s: Equal = %t, want %t", v, name, got, want)
		}
		if got := equal(&changed, &v); got != want {
			t.Errorf("%T with another %s: Equal the other way = %t, want %t", v, name, got, want)
		}
	}
}

func TestEqualLooksAtEveryField(t *testing.T) {
	t.Parallel()
	checkEqual(t, registry.Service{}, (*registry.Service).Equal, "CreationTime", "ResourceVersion")
	checkEqual(t, registry.ServiceAttributes{}, func(a, b *registry.ServiceAttributes) bool {
		return (&registry.Service{Attributes: *a}).Equal(&registry.Service{Attributes: *b})
	})
	checkEqual(t, registry.KubernetesAttributes{}, func(k, l *registry.KubernetesAttributes) bool {
		return (&registry.Service{Attributes: registry.ServiceAttributes{Kubernetes: k}}).Equal(
			&registry.Service{Attributes: registry.ServiceAttributes{Kubernetes: l}})
	})
	checkEqual(t, registry.Endpoint{Addresses: []string{"a"}}, (*registry.Endpoint).Equal)
	checkEqual(t, registry.EndpointAttributes{}, (*registry.EndpointAttributes).Equal)
	checkEqual(t, registry.WorkloadInstance{}, (*registry.WorkloadInstance).Equal)
}

func TestEqualOfNil(t *testing.T) {
	t.Parallel()
	var s *registry.Service
	var e *registry.Endpoint
	var w *registry.WorkloadInstance
	if !s.Equal(nil) || s.Equal(&registry.Service{}) || (&registry.Service{}).Equal(nil) {
		t.Error("Service: nil equals nil alone")
	}
	if !e.Equal(nil) || e.Equal(&registry.Endpoint{}) || (&registry.Endpoint{}).Equal(nil) {
		t.Error("Endpoint: nil equals nil alone")
	}
	if !w.Equal(nil) || w.Equal(&registry.WorkloadInstance{}) || (&registry.WorkloadInstance{}).Equal(nil) {
		t.Error("WorkloadInstance: nil equals nil alone")
	}
}

// The order of the endpoints must distinguish all endpoints that Equal distinguishes. Then lists
// that are equal as sets are equal as lists, in every replica.
func TestCompareEndpointsLooksAtEveryField(t *testing.T) {
	t.Parallel()
	v := registry.Endpoint{Addresses: []string{"a"}, Shared: &registry.EndpointAttributes{}}
	changed := fields(t, v)
	for name, a := range fields(t, registry.EndpointAttributes{}) {
		e := v
		e.Shared = &a
		changed["Shared."+name] = e
	}
	inKey := []string{
		"first address", "EndpointPort", "ServicePort", "ServicePortName", "WorkloadName",
		"Shared", "Shared.Namespace", "Shared.Network",
	}
	changed["first address"] = registry.Endpoint{Addresses: []string{"b"}}
	for name, e := range changed {
		there, back := registry.CompareEndpoints(&v, &e), registry.CompareEndpoints(&e, &v)
		if there == 0 || there != -back {
			t.Errorf("another %s: CompareEndpoints = %d and %d the other way", name, there, back)
		}
		// Endpoints of one key must be neighbours.
		if keys := registry.CompareEndpointKeys(&v, &e); (keys != 0) != slices.Contains(inKey, name) || keys != 0 && keys != there {
			t.Errorf("another %s: CompareEndpointKeys = %d, CompareEndpoints = %d", name, keys, there)
		}
	}
	w := v
	w.Shared = &registry.EndpointAttributes{Labels: registry.Labels{}}
	if c := registry.CompareEndpoints(&v, &w); c != 0 {
		t.Errorf("CompareEndpoints of equals = %d, want 0", c)
	}
	w.Shared = nil
	if c := registry.CompareEndpoints(&v, &w); c != 0 {
		t.Errorf("CompareEndpoints with no attributes = %d, want 0", c)
	}
}

func TestEndpointAddressesAreUnordered(t *testing.T) {
	t.Parallel()
	e := func(addresses ...string) *registry.Endpoint { return &registry.Endpoint{Addresses: addresses} }
	for _, test := range []struct {
		a, b *registry.Endpoint
		want bool
	}{
		{e("x", "y"), e("y", "x"), true},
		{e("x", "x"), e("x", "y"), false},
		{e("x"), e("x", "x"), false},
		{e(), e(), true},
	} {
		if got := test.a.Equal(test.b); got != test.want {
			t.Errorf("%v Equal %v = %t, want %t", test.a.Addresses, test.b.Addresses, got, test.want)
		}
	}
	if got := e("x", "y").Address(); got != "x" {
		t.Errorf("Address() = %q, want the first", got)
	}
	if got := e().Address(); got != "" {
		t.Errorf("Address() = %q, want none", got)
	}
}

func TestEndpointVisibleTo(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		only     bool
		endpoint registry.ClusterID
		proxy    registry.ClusterID
		want     bool
	}{
		{false, "a", "b", true},
		{true, "a", "a", true},
		{true, "a", "b", false},
		{true, "", "b", true},
		{true, "a", "", true},
	} {
		e := &registry.Endpoint{Shared: &registry.EndpointAttributes{ClusterID: test.endpoint, DiscoverableFromSameCluster: test.only}}
		if got := e.VisibleTo(test.proxy); got != test.want {
			t.Errorf("only its cluster %t, %q to %q: VisibleTo = %t, want %t", test.only, test.endpoint, test.proxy, got, test.want)
		}
	}
	if !(&registry.Endpoint{}).VisibleTo("a") {
		t.Error("an endpoint without attributes is not visible")
	}
}

func TestWorkloadKey(t *testing.T) {
	t.Parallel()
	w := &registry.WorkloadInstance{Cluster: "c", Kind: registry.WorkloadEntry, Namespace: "ns", Name: "w"}
	want := registry.WorkloadKey{Cluster: "c", Kind: registry.WorkloadEntry, Namespace: "ns", Name: "w"}
	if got := w.Key(); got != want {
		t.Errorf("Key() = %+v, want %+v", got, want)
	}
}

func TestStrings(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		got  fmt.Stringer
		want string
	}{
		{registry.WorkloadKey{Kind: registry.WorkloadEntry, Namespace: "ns", Name: "w"}, "WorkloadEntry ns/w"},
		{registry.WorkloadKey{Cluster: "c", Namespace: "ns", Name: "w"}, "Pod ns/w of cluster c"},
		{registry.EventAdd, "add"},
		{registry.EventUpdate, "update"},
		{registry.EventDelete, "delete"},
		{registry.Event(0), "Event(0)"},
		{registry.HealthUnset, "Unset"},
		{registry.Healthy, "Healthy"},
		{registry.UnHealthy, "UnHealthy"},
		{registry.Draining, "Draining"},
		{registry.Terminating, "Terminating"},
		{registry.HealthStatus(9), "HealthStatus(?)"},
		{registry.ClientSideLB, "ClientSide"},
		{registry.DNSLB, "DNS"},
		{registry.DNSRoundRobinLB, "DNSRoundRobin"},
		{registry.Passthrough, "Passthrough"},
		{registry.Alias, "Alias"},
		{registry.DynamicDNS, "DynamicDNS"},
		{registry.Resolution(9), "Resolution(?)"},
		{registry.Pod, "Pod"},
		{registry.WorkloadEntry, "WorkloadEntry"},
	} {
		if got := test.got.String(); got != test.want {
			t.Errorf("String() = %q, want %q", got, test.want)
		}
	}
}
