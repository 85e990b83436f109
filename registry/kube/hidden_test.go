// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/kube"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// Handlers are not notified of adds and deletes of a service that is exported to no namespace.
// Hiding a service, and exporting it again, is an update.
func TestHiddenServiceIsNotHeardOf(t *testing.T) {
	t.Parallel()
	k := kube.New(nil, xdsupdate.Discard{})
	var got []string
	k.SubscribeServices(func(_, s *registry.Service, e registry.Event) { got = append(got, e.String()+" "+string(s.Hostname)) })
	service := func(exportTo string) *corev1.Service {
		s := shopService("ns")
		s.Annotations = map[string]string{"networking.istio.io/exportTo": exportTo}
		return s
	}
	const host = " shop.ns.svc.cluster.local"
	for i, step := range []struct {
		object  *corev1.Service
		removed bool
		want    []string
	}{
		{object: service("~")},
		{object: service("~"), removed: true},
		{object: service("~")},
		{object: service("."), want: []string{"update" + host}},
		{object: service("."), removed: true, want: []string{"delete" + host}},
		{object: service("*"), want: []string{"add" + host}},
		{object: service("~"), want: []string{"update" + host}},
	} {
		got = nil
		if step.removed {
			k.Remove(step.object)
		} else {
			k.Put(step.object)
		}
		k.Drain()
		if diff := cmp.Diff(step.want, got); diff != "" {
			t.Errorf("step %d (-want +got):\n%s", i, diff)
		}
	}
}

// For the updater, a service that becomes exported to no namespace is deleted with its endpoints.
// Its endpoints are not reported afterwards.
func TestHiddenServiceIsNotReported(t *testing.T) {
	t.Parallel()
	updater := &recorder{index: xdsupdate.NewEndpointIndex()}
	k := kube.New(nil, updater)
	calls := func() (out []string) {
		k.Drain()
		for _, c := range updater.take() {
			if c.name == callSvcUpdate || c.name == callEDSUpdate {
				out = append(out, c.name)
			}
		}
		return out
	}
	k.Put(shopService("ns"))
	k.Put(shopSlice("ns", "10.1.0.2"))
	if diff := cmp.Diff([]string{callSvcUpdate, callEDSUpdate}, calls()); diff != "" {
		t.Errorf("visible (-want +got):\n%s", diff)
	}
	hidden := shopService("ns")
	hidden.Annotations = map[string]string{"networking.istio.io/exportTo": "~"}
	k.Put(hidden)
	if diff := cmp.Diff([]string{callSvcUpdate}, calls()); diff != "" {
		t.Errorf("hidden (-want +got):\n%s", diff)
	}
	k.Put(shopSlice("ns", "10.1.0.2", "10.1.0.3"))
	if got := calls(); len(got) > 0 {
		t.Errorf("a slice of a hidden service is reported: %v", got)
	}
}

// A change of a service that is exported to no namespace is pushed, because the service is merged
// with that of other clusters, and may hide it.
func TestHiddenServiceIsPushed(t *testing.T) {
	t.Parallel()
	updater := &recorder{index: xdsupdate.NewEndpointIndex()}
	k := kube.New(nil, updater)
	hidden := func(ip string) *corev1.Service {
		s := shopService("ns")
		s.Annotations, s.Spec.ClusterIP = map[string]string{"networking.istio.io/exportTo": "~"}, ip
		return s
	}
	for i, step := range []struct {
		change func(any)
		object *corev1.Service
		pushes int
	}{
		{k.Put, hidden("10.96.0.1"), 1}, {k.Put, hidden("10.96.0.1"), 0}, {k.Put, hidden("10.96.0.2"), 1}, {k.Remove, hidden("10.96.0.2"), 1},
	} {
		step.change(step.object)
		k.Drain()
		pushes := 0
		for _, c := range updater.take() {
			if c.name != callConfigUpdate {
				t.Errorf("step %d: %s", i, c.name)
			} else if _, ok := c.request.ConfigsUpdated[xdsupdate.ServiceKey("shop.ns.svc.cluster.local", "ns")]; ok {
				pushes++
			}
		}
		if pushes != step.pushes {
			t.Errorf("step %d: %d pushes, want %d", i, pushes, step.pushes)
		}
	}
}

// A pod that has another address is another proxy to push.
func TestProxyUpdateForAddress(t *testing.T) {
	t.Parallel()
	updater := &recorder{index: xdsupdate.NewEndpointIndex()}
	k := kube.New(nil, updater)
	for _, address := range []string{"10.1.0.1", "10.1.0.1", "10.1.0.2"} {
		before := k.GetProxyWorkloadLabels(&registry.Proxy{ID: "p1.ns"}) != nil
		k.Put(readyPod("ns", "p1", address))
		k.Drain()
		var got []string
		for _, c := range updater.take() {
			if c.name == callProxyUpdate {
				got = append(got, c.ip)
			}
		}
		want := []string{address}
		if before && address == "10.1.0.1" {
			want = nil // without a change
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", address, diff)
		}
	}
}
