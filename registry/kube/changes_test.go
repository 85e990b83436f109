// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilotkit/pilotkit/internal/topo"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/kube"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// A node whose labels change begins or ends to lead to the services that select nodes.
func TestNodeIsRelabelled(t *testing.T) {
	t.Parallel()
	k := kube.New(nil, xdsupdate.Discard{}, kube.Options{ClusterID: "c1"})
	service := shopService("ns")
	service.Spec.Type = corev1.ServiceTypeNodePort
	service.Spec.Ports[0].NodePort = 30080
	service.Annotations = map[string]string{"traffic.istio.io/nodeSelector": `{"gw": "yes"}`}
	k.Put(service)
	for _, step := range []struct {
		label string
		want  []string
	}{{"no", nil}, {"yes", []string{"192.0.2.1"}}, {"no", nil}} {
		k.Put(&corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: "n1", Labels: map[string]string{"gw": step.label}},
			Status:     corev1.NodeStatus{Addresses: []corev1.NodeAddress{{Type: corev1.NodeExternalIP, Address: "192.0.2.1"}}},
		})
		k.Drain()
		got := k.GetService("shop.ns.svc.cluster.local").Attributes.ClusterExternalAddresses["c1"]
		if !slices.Equal(got, step.want) {
			t.Errorf("with the label %q: external addresses %q, want %q", step.label, got, step.want)
		}
	}
}

// A pod whose phase is unknown, or not given, has not ended: if it is ready, handlers see
// it, as Kubernetes lists it.
func TestPhaseOfAPod(t *testing.T) {
	t.Parallel()
	for phase, want := range map[corev1.PodPhase]bool{
		"": true, corev1.PodUnknown: true, corev1.PodPending: true, corev1.PodRunning: true,
		corev1.PodSucceeded: false, corev1.PodFailed: false,
	} {
		k := kube.New(nil, xdsupdate.Discard{}, kube.Options{})
		pod := readyPod("ns", "p1", "10.1.0.1")
		pod.Status.Phase = phase
		k.Put(pod)
		seen := false
		cancel := k.SubscribeWorkloads(func(*registry.WorkloadInstance, registry.Event) { seen = true })
		k.Drain()
		cancel()
		if seen != want {
			t.Errorf("phase %q: seen by handlers %t, want %t", phase, seen, want)
		}
	}
}

// The TLS mode is the value of the label; without the label TLS is disabled.
func TestTLSModeOfAPod(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		label *string
		want  string
	}{{nil, "disabled"}, {new(string), ""}, {new("istio"), "istio"}, {new("own"), "own"}} {
		k := kube.New(nil, xdsupdate.Discard{}, kube.Options{})
		pod := readyPod("ns", "p1", "10.1.0.1")
		if test.label != nil {
			pod.Labels["security.istio.io/tlsMode"] = *test.label
		}
		k.Put(shopService("ns"))
		k.Put(shopSlice("ns", "10.1.0.1"))
		k.Put(pod)
		k.Drain()
		instances := k.InstancesByPort(k.GetService("shop.ns.svc.cluster.local"), 0)
		if len(instances) != 1 || instances[0].Endpoint.Attributes().TLSMode != test.want {
			t.Errorf("label %v: endpoints %v, want one with the TLS mode %q", test.label, instances, test.want)
		}
	}
}

// The network of a workload comes from its label, then from the system namespace, then from the
// cluster, then from the range of the address.
func TestOrderOfNetworks(t *testing.T) {
	t.Parallel()
	system := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "istio-system", Labels: map[string]string{topo.Network: "of-system"}}}
	of := func(network kube.Network) kube.Mesh { return kube.Mesh{Networks: []kube.Network{network}} }
	ranges := kube.Network{Name: "of-range", Ranges: []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16")}}
	both := of(ranges)
	both.Networks = append(both.Networks, kube.Network{Name: "of-cluster", Registries: []registry.ClusterID{"c1"}})
	for _, test := range []struct {
		label  string
		system *corev1.Namespace
		mesh   kube.Mesh
		want   string
	}{
		{"of-label", system, both, "of-label"},
		{"", system, both, "of-system"},
		{"", nil, both, "of-cluster"},
		{"", system, of(ranges), "of-system"},
		{"", nil, of(ranges), "of-range"},
		{"", nil, kube.Mesh{}, ""},
	} {
		k := kube.New(nil, xdsupdate.Discard{}, kube.Options{ClusterID: "c1", Mesh: test.mesh})
		pod := readyPod("ns", "p1", "10.1.0.1")
		if test.label != "" {
			pod.Labels[topo.Network] = test.label
		}
		k.Put(shopService("ns"))
		k.Put(shopSlice("ns", "10.1.0.1"))
		k.Put(pod)
		if test.system != nil {
			k.Put(test.system)
		}
		k.Drain()
		if got := k.NetworkOf("10.1.0.1", pod.Labels); got != test.want {
			t.Errorf("NetworkOf = %q, want %q", got, test.want)
		}
		for _, i := range k.InstancesByPort(k.GetService("shop.ns.svc.cluster.local"), 80) {
			if got := i.Endpoint.Shared.Network; got != test.want {
				t.Errorf("the endpoint is in %q, want %q", got, test.want)
			}
		}
	}
}

// An endpoint that names no pod has the identity of one at its address: of several that of
// the one with an address of its own, then of the oldest. It follows when only that changes.
func TestPodsOfOneAddress(t *testing.T) {
	t.Parallel()
	first := time.Unix(1_000_000, 0)
	pod := func(name string, created time.Time, hostNetwork bool) *corev1.Pod {
		p := readyPod("ns", name, "10.1.0.2")
		p.CreationTimestamp = metav1.NewTime(created)
		p.Spec.ServiceAccountName, p.Spec.HostNetwork = name, hostNetwork
		return p
	}
	for name, test := range map[string]struct{ changed *corev1.Pod }{
		"it is of the host network now": {pod("p1", first, true)},
		"it is younger now":             {pod("p1", first.Add(time.Hour), false)},
	} {
		k := kube.New(nil, xdsupdate.Discard{})
		k.Put(shopService("ns"))
		k.Put(shopSlice("ns", "10.1.0.2"))
		k.Put(pod("p1", first, false))
		k.Put(pod("p2", first.Add(time.Minute), false))
		account := func() string {
			k.Drain()
			for _, i := range k.InstancesByPort(k.GetService("shop.ns.svc.cluster.local"), 80) {
				return i.Endpoint.Shared.ServiceAccount
			}
			return ""
		}
		if got := account(); !strings.HasSuffix(got, "/sa/p1") {
			t.Errorf("the account is %q, want that of the older pod", got)
		}
		k.Put(test.changed)
		if got := account(); !strings.HasSuffix(got, "/sa/p2") {
			t.Errorf("%s: the account is %q, want that of the other pod", name, got)
		}
	}
}
