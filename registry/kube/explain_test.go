// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilotkit/pilotkit/registry/kube"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

func readyPod(namespace, name, ip string) *corev1.Pod {
	p := shopPod(namespace, name)
	p.Status = corev1.PodStatus{
		Phase: corev1.PodRunning, PodIP: ip, PodIPs: []corev1.PodIP{{IP: ip}},
		Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
	}
	return p
}

func TestExplain(t *testing.T) {
	t.Parallel()
	hidden := shopService("ns")
	hidden.Annotations = map[string]string{"networking.istio.io/exportTo": "~"}
	unready := shopSlice("ns", "10.1.0.1")
	no := false
	unready.Endpoints[0].Conditions.Ready = &no
	other := readyPod("ns", "p1", "10.1.0.1")
	other.Labels = map[string]string{"app": "other"}
	second := unready.DeepCopy()
	second.Name = "shop-0"
	for _, test := range []struct {
		name      string
		objects   []any
		mesh      kube.Mesh
		endpoints int
		reason    string
	}{
		{"an endpoint", []any{shopService("ns"), readyPod("ns", "p1", "10.1.0.1"), shopSlice("ns", "10.1.0.1")}, kube.Mesh{}, 1, ""},
		{"no service", []any{readyPod("ns", "p1", "10.1.0.1")}, kube.Mesh{}, 0, "there is no service"},
		{"exported to nobody", []any{hidden, readyPod("ns", "p1", "10.1.0.1"), shopSlice("ns", "10.1.0.1")}, kube.Mesh{}, 0, "exported to nobody"},
		{"no pod", []any{shopService("ns"), shopSlice("ns", "10.1.0.1")}, kube.Mesh{}, 0, "there is no pod ns/p1"},
		{"no slice", []any{shopService("ns"), readyPod("ns", "p1", "10.1.0.1")}, kube.Mesh{}, 0, "none of the 0 slices"},
		{"other labels", []any{shopService("ns"), other}, kube.Mesh{}, 0, "does not match the pod's labels"},
		{"not ready", []any{shopService("ns"), readyPod("ns", "p1", "10.1.0.1"), unready}, kube.Mesh{}, 1, "it is UnHealthy"},
		{
			"in two slices",
			[]any{shopService("ns"), readyPod("ns", "p1", "10.1.0.1"), shopSlice("ns", "10.1.0.1"), second},
			kube.Mesh{},
			1, "the endpoint of the slice shop-1",
		},
		{
			"not watched",
			[]any{shopService("ns")},
			kube.Mesh{DiscoverySelectors: []metav1.LabelSelector{{MatchLabels: map[string]string{"a": "b"}}}},
			0, "its namespace is not watched",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			k := kube.New(nil, xdsupdate.Discard{}, kube.Options{Mesh: test.mesh})
			for _, o := range test.objects {
				k.Put(o)
			}
			x, err := k.Explain(t.Context(), "shop.ns.svc.cluster.local", "ns", "p1")
			if err != nil {
				t.Fatal(err)
			}
			if len(x.Endpoints) != test.endpoints {
				t.Errorf("%d endpoints, want %d", len(x.Endpoints), test.endpoints)
			}
			if all := strings.Join(x.Reasons, "; "); !strings.Contains(all, test.reason) || test.reason == "" && all != "" {
				t.Errorf("reasons %q, want %q", all, test.reason)
			}
			wrong, err := k.Verify(t.Context())
			if err != nil || len(wrong) > 0 {
				t.Errorf("Verify: %v, %v", wrong, err)
			}
		})
	}
}

// Verify must find defects.
func TestVerifyFindsDifferences(t *testing.T) {
	t.Parallel()
	k := kube.New(nil, xdsupdate.Discard{}, kube.Options{})
	for _, o := range []any{shopService("ns"), readyPod("ns", "p1", "10.1.0.1"), shopSlice("ns", "10.1.0.1")} {
		k.Put(o)
	}
	k.Drain()
	k.Corrupt("shop.ns.svc.cluster.local")
	wrong, err := k.Verify(t.Context())
	if err != nil || len(wrong) != 1 {
		t.Errorf("Verify of a registry that shows an endpoint too few: %v, %v", wrong, err)
	}
}
