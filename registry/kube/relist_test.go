// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/pilotkit/pilotkit/registry/kube"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// Objects that are missing in a complete list are deleted, also in namespaces that the mesh does
// not select at the time. Objects of other kinds stay.
func TestRelist(t *testing.T) {
	t.Parallel()
	client, err := kubernetes.NewForConfig(&rest.Config{Host: "http://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	for name, selected := range map[string]bool{"selected": true, "not selected": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := kube.New(client, xdsupdate.Discard{}, kube.Options{Mesh: kube.Mesh{
				DiscoverySelectors: []metav1.LabelSelector{{MatchLabels: map[string]string{"watch": "yes"}}},
			}})
			namespace := func(watch string) *corev1.Namespace {
				return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns", Labels: map[string]string{"watch": watch}}}
			}
			shown := func() (services, endpoints, pods int) {
				k.Relist("namespaces", namespace("yes")) // to show the content
				k.Drain()
				for _, s := range k.Services() {
					services++
					endpoints += len(k.InstancesByPort(s, 0))
				}
				pods = len(slices.DeleteFunc(viewAll(k, xdsupdate.NewEndpointIndex())["workloads"], func(s string) bool { return s == "" }))
				if !selected {
					k.Relist("namespaces", namespace("no"))
					k.Drain()
				}
				return services, endpoints, pods
			}
			is := func(what string, services, endpoints, pods int) {
				t.Helper()
				if s, e, p := shown(); s != services || e != endpoints || p != pods {
					t.Errorf("%s: %d services, %d endpoints, %d pods; want %d, %d, %d", what, s, e, p, services, endpoints, pods)
				}
			}
			k.Relist("services", shopService("ns"))
			k.Relist("endpointslices", shopSlice("ns", "10.1.0.2", "10.1.0.3"))
			k.Relist("pods", readyPod("ns", "p1", "10.1.0.1"), readyPod("ns", "p2", "10.1.0.4"))
			is("lists", 1, 2, 2)
			k.Relist("pods", readyPod("ns", "p2", "10.1.0.4"))
			is("a pod less", 1, 2, 1)
			k.Relist("endpointslices")
			is("no slices", 1, 0, 1)
			k.Relist("services")
			is("no services", 0, 0, 1)
			k.Relist("namespaces")
			k.Drain()
			if got := viewAll(k, xdsupdate.NewEndpointIndex()); len(got) > 0 {
				t.Errorf("without namespaces it shows %v", got)
			}
		})
	}
}
