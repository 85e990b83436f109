// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/pilotkit/pilotkit/registry/kube"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// Two endpoints of one slice that are alike, as their pods are, count once; when the
// pod of the first goes, the second is still there.
func TestEqualEndpointsInOneSlice(t *testing.T) {
	t.Parallel()
	k := kube.New(nil, xdsupdate.Discard{}, kube.Options{})
	slice := shopSlice("ns", "10.1.0.1", "10.1.0.1")
	for i, name := range []string{"p1", "p2"} {
		slice.Endpoints[i].TargetRef = &corev1.ObjectReference{Kind: "Pod", Name: name, Namespace: "ns"}
		p := readyPod("ns", name, "10.1.0.1")
		p.Labels["service.istio.io/workload-name"] = "shop"
		k.Put(p)
	}
	k.Put(shopService("ns"))
	k.Put(slice)
	k.Drain()
	count := func() int {
		return len(k.InstancesByPort(k.GetService("shop.ns.svc.cluster.local"), 0))
	}
	if got := count(); got != 1 {
		t.Errorf("%d endpoints, want 1", got)
	}
	k.Remove(readyPod("ns", "p1", "10.1.0.1"))
	k.Drain()
	if got := count(); got != 1 {
		t.Errorf("%d endpoints after the first pod went, want that of the second", got)
	}
	k.Remove(readyPod("ns", "p2", "10.1.0.1"))
	k.Drain()
	if got := count(); got != 0 {
		t.Errorf("%d endpoints without pods, want none", got)
	}
}
