// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"fmt"
	"runtime"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilotkit/pilotkit/registry/kube"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// The cluster of the benchmarks: each service has one slice of ten pods, and each
// pod is on one of a thousand nodes.
const (
	benchServices   = 10_000
	podsPerService  = 10
	benchNodes      = 1_000
	benchNamespaces = 100
)

func benchNamespace(service int) string { return fmt.Sprintf("ns-%d", service%benchNamespaces) }

func benchPod(service, i int, version string) *corev1.Pod {
	controller := true
	n := service*podsPerService + i
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: benchNamespace(service), Name: fmt.Sprintf("app-%d-7d9c4b6f8-%05d", service, i),
			GenerateName:    fmt.Sprintf("app-%d-7d9c4b6f8-", service),
			Labels:          map[string]string{"app": fmt.Sprintf("app-%d", service), "version": version, "pod-template-hash": "7d9c4b6f8"},
			OwnerReferences: []metav1.OwnerReference{{Kind: "ReplicaSet", Name: fmt.Sprintf("app-%d-7d9c4b6f8", service), Controller: &controller}},
		},
		Spec: corev1.PodSpec{
			ServiceAccountName: fmt.Sprintf("app-%d", service), NodeName: fmt.Sprintf("node-%d", n%benchNodes),
			Containers: []corev1.Container{{Name: "app", Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}}}},
		},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, PodIP: benchAddress(service, i), PodIPs: []corev1.PodIP{{IP: benchAddress(service, i)}},
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
		},
	}
}

func benchAddress(service, i int) string {
	n := service*podsPerService + i
	return fmt.Sprintf("10.%d.%d.%d", n>>16&255, n>>8&255, n&255)
}

func benchSlice(service, unready int) *discoveryv1.EndpointSlice {
	s := shopSlice(benchNamespace(service))
	s.Name, s.Labels = fmt.Sprintf("app-%d-x", service), map[string]string{discoveryv1.LabelServiceName: fmt.Sprintf("app-%d", service)}
	for i := range podsPerService {
		ready := i != unready
		s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{
			Addresses: []string{benchAddress(service, i)}, Conditions: discoveryv1.EndpointConditions{Ready: &ready},
			TargetRef: &corev1.ObjectReference{Kind: "Pod", Namespace: s.Namespace, Name: fmt.Sprintf("app-%d-7d9c4b6f8-%05d", service, i)},
		})
	}
	return s
}

func benchService(service int) *corev1.Service {
	s := shopService(benchNamespace(service))
	s.Name, s.Spec.Selector = fmt.Sprintf("app-%d", service), map[string]string{"app": fmt.Sprintf("app-%d", service)}
	s.Spec.ClusterIP = fmt.Sprintf("10.200.%d.%d", service>>8, service&255)
	return s
}

// fillCluster queues all objects of a cluster of some services.
func fillCluster(k *kube.Controller, services int) {
	fillNodes(k)
	for s := range services {
		k.Put(benchService(s))
		k.Put(benchSlice(s, -1))
		fillPods(k, s)
	}
}

func fillNodes(k *kube.Controller) {
	for n := range benchNodes {
		k.Put(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("node-%d", n), Labels: map[string]string{
			"topology.kubernetes.io/region": "r1", "topology.kubernetes.io/zone": fmt.Sprintf("z%d", n%3),
		}}})
	}
}

func fillPods(k *kube.Controller, service int) {
	for i := range podsPerService {
		k.Put(benchPod(service, i, "v1"))
	}
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// BenchmarkSync measures the time from the first object to the last call of the updater. The
// variant "objects" only creates the objects.
func BenchmarkSync(b *testing.B) {
	b.Run("objects", func(b *testing.B) {
		for b.Loop() {
			for s := range benchServices {
				runtime.KeepAlive(benchService(s))
				runtime.KeepAlive(benchSlice(s, -1))
				for i := range podsPerService {
					runtime.KeepAlive(benchPod(s, i, "v1"))
				}
			}
		}
	})
	b.Run("registry", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			k := kube.New(nil, xdsupdate.Discard{}, kube.Options{ClusterID: "c"})
			fillCluster(k, benchServices)
			k.Drain()
		}
	})
}

// BenchmarkHeap measures the memory per pod, per service and per endpoint of a slice, and all of it
// per pod. The objects themselves are dropped, like the objects of a watch. The updater keeps
// nothing, so the memory of endpoints belongs to the registry.
func BenchmarkHeap(b *testing.B) {
	const pods = benchServices * podsPerService
	for b.Loop() {
		k := kube.New(nil, xdsupdate.Discard{}, kube.Options{ClusterID: "c"})
		empty := heap()
		last := empty
		grown := func(unit string, n int) {
			k.Drain()
			h := heap()
			b.ReportMetric(float64(h-last)/float64(n), unit)
			last = h
		}
		fillNodes(k)
		for s := range benchServices {
			fillPods(k, s)
		}
		grown("B/pod", pods)
		for s := range benchServices {
			k.Put(benchService(s))
		}
		grown("B/service", benchServices)
		for s := range benchServices {
			k.Put(benchSlice(s, -1))
		}
		grown("B/endpoint", pods)
		b.ReportMetric(float64(last-empty)/pods, "B/pod-all")
		runtime.KeepAlive(k)
	}
}

// BenchmarkSliceChange is one endpoint of a slice that becomes unready or ready, in
// clusters of different sizes.
func BenchmarkSliceChange(b *testing.B) {
	for _, services := range []int{100, benchServices} {
		b.Run(fmt.Sprintf("services=%d", services), func(b *testing.B) {
			k := kube.New(nil, xdsupdate.Discard{}, kube.Options{ClusterID: "c"})
			fillCluster(k, services)
			k.Drain()
			states := []*discoveryv1.EndpointSlice{benchSlice(services/2, 3), benchSlice(services/2, -1)}
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				k.Put(states[i%2])
				k.Drain()
				i++
			}
		})
	}
}

// BenchmarkPodLabelChange is the change of one label of a pod that is an endpoint.
func BenchmarkPodLabelChange(b *testing.B) {
	for _, services := range []int{100, benchServices} {
		b.Run(fmt.Sprintf("services=%d", services), func(b *testing.B) {
			k := kube.New(nil, xdsupdate.Discard{}, kube.Options{ClusterID: "c"})
			fillCluster(k, services)
			k.Drain()
			states := []*corev1.Pod{benchPod(services/2, 3, "v2"), benchPod(services/2, 3, "v1")}
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				k.Put(states[i%2])
				k.Drain()
				i++
			}
		})
	}
}

// BenchmarkConvertSlice measures the conversion of the decoded object in a slice change, which is a
// lower bound of the cost of the change.
func BenchmarkConvertSlice(b *testing.B) {
	s := benchSlice(1, -1)
	b.ReportAllocs()
	for b.Loop() {
		kube.Convert(s)
	}
}

// wideSlice is one of the slices of a hundred endpoints of a service.
func wideSlice(n, unready int) *discoveryv1.EndpointSlice {
	s := shopSlice("ns")
	s.Name = fmt.Sprintf("shop-%d", n)
	for i := range 100 {
		ready := i != unready
		s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{
			Addresses: []string{fmt.Sprintf("10.9.%d.%d", n, i)}, Conditions: discoveryv1.EndpointConditions{Ready: &ready},
		})
	}
	return s
}

func fillWide(k *kube.Controller, slices int) {
	k.Put(shopService("ns"))
	for n := range slices {
		k.Put(wideSlice(n, -1))
	}
	k.Drain()
}

// BenchmarkWideService is one endpoint of a service with many slices.
func BenchmarkWideService(b *testing.B) {
	for _, slices := range []int{10, 100} {
		b.Run(fmt.Sprintf("endpoints=%d", slices*100), func(b *testing.B) {
			k := kube.New(nil, xdsupdate.Discard{}, kube.Options{ClusterID: "c"})
			fillWide(k, slices)
			states := []*discoveryv1.EndpointSlice{wideSlice(3, 7), wideSlice(3, -1)}
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				k.Put(states[i%2])
				k.Drain()
				i++
			}
		})
	}
}
