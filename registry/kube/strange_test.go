// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pilotkit/pilotkit/internal/test/histories"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/kube"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// TestStrangeObjects gives a registry objects with arbitrary values in any field, even values that
// no API server accepts. Nothing panics, and queries return. In the end the content equals that of
// a registry that receives only the remaining objects.
func TestStrangeObjects(t *testing.T) {
	t.Parallel()
	for _, seed := range histories.Seeds(t, 20) {
		r := strangeness{rand.New(rand.NewPCG(seed, 0))}
		options := kube.Options{ClusterID: "c", DualStack: seed%2 == 0, FindProxiesByAddress: seed%3 > 0}
		index := xdsupdate.NewEndpointIndex()
		k := kube.New(nil, &recorder{index: index}, options)
		left := map[string]runtime.Object{}
		for range 120 {
			r.change(k, left)
			if r.IntN(3) == 0 {
				k.Drain()
				askAnything(k)
			}
		}
		k.Drain()
		if wrong, err := k.Verify(t.Context()); err != nil || len(wrong) > 0 {
			t.Errorf("seed %d: Verify: %v, %v", seed, err, wrong)
		}
		freshIndex := xdsupdate.NewEndpointIndex()
		fresh := kube.New(nil, &recorder{index: freshIndex}, options)
		for _, o := range left {
			fresh.Put(o)
		}
		fresh.Drain()
		if diff := cmp.Diff(viewAll(k, index), viewAll(fresh, freshIndex)); diff != "" {
			t.Errorf("seed %d: of the objects that are left a registry shows (-), and one without their past (+):\n%s", seed, diff)
		}
	}
}

// askAnything makes the queries of a server, and ignores the results.
func askAnything(k *kube.Controller) {
	for _, s := range k.Services() {
		k.InstancesByPort(s, 0)
	}
	for _, ip := range []string{"10.0.0.1", "fd00::1", ""} {
		proxy := &registry.Proxy{ID: "a.ns1", IPAddresses: []string{ip}, Namespace: "ns1", Labels: registry.Labels{"a": "b"}}
		k.GetProxyServiceInstances(proxy)
		k.GetProxyWorkloadLabels(proxy)
	}
}

type strangeness struct{ *rand.Rand }

// change adds or removes an object of some kind, and updates the remaining objects in left.
func (r strangeness) change(k *kube.Controller, left map[string]runtime.Object) {
	kind := []string{"Service", "EndpointSlice", "Pod", "Node", "Namespace"}[r.IntN(5)]
	o := emptyObject(kind)
	r.fill(reflect.ValueOf(o).Elem(), 0)
	meta := reflect.ValueOf(o).Elem().FieldByName("ObjectMeta").Addr().Interface().(*metav1.ObjectMeta)
	meta.Name, meta.Namespace = []string{"a", "b", ""}[r.IntN(3)], []string{"ns1", "ns1", ""}[r.IntN(3)]
	switch kind {
	case "Node", "Namespace":
		meta.Namespace = ""
	case "EndpointSlice": // else hardly any is of a service
		meta.Labels = map[string]string{serviceName: []string{"a", "b", ""}[r.IntN(3)]}
	}
	key := kind + " " + meta.Namespace + "/" + meta.Name
	if r.IntN(5) == 0 {
		k.Remove(o)
		delete(left, key)
		return
	}
	k.Put(o)
	left[key] = o
}

// fill sets some fields of a value, to values that other fields may reference.
func (r strangeness) fill(v reflect.Value, depth int) {
	texts := []string{
		"", "a", "b", "ns1", "10.0.0.1", "fd00::1", "::ffff:10.0.0.1", "no address", "/", "///", ",", "{}", "null", "None", "~", "~,.",
		"Pod", "Running", "Ready", "True", "TCP", "UDP", "NodePort", "ExternalName", "LoadBalancer", "ExternalIP", "IPv4", "FQDN", serviceName,
		"topology.istio.io/network", "topology.istio.io/locality", "topology.kubernetes.io/region", "traffic.istio.io/nodeSelector",
		"networking.istio.io/exportTo", "networking.istio.io/gatewayPort", "alpha.istio.io/kubernetes-serviceaccounts",
	}
	if v.Type() == reflect.TypeFor[time.Time]() {
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(texts[r.IntN(len(texts))])
	case reflect.Bool:
		v.SetBool(r.IntN(2) == 0)
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt([]int64{0, -1, 80, 15443, 1 << 30}[r.IntN(5)])
	case reflect.Pointer:
		if r.IntN(2) == 0 && depth < 6 {
			v.Set(reflect.New(v.Type().Elem()))
			r.fill(v.Elem(), depth+1)
		}
	case reflect.Slice:
		if depth < 6 {
			v.Set(reflect.MakeSlice(v.Type(), r.IntN(4), 4))
		}
		for i := range v.Len() {
			r.fill(v.Index(i), depth+1)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range r.IntN(4) {
			key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			r.fill(key, depth+1)
			r.fill(value, depth+1)
			v.SetMapIndex(key, value)
		}
	case reflect.Struct:
		for _, field := range v.Fields() {
			if field.CanSet() && r.IntN(4) > 0 {
				r.fill(field, depth+1)
			}
		}
	default: // no field has another kind
	}
}
