// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/kube"
)

// world is everything that a registry's state is a function of. Its methods compute
// that state from scratch, in the plainest way, and share no code with the registry.
type world struct {
	cluster        string
	suffix, system string
	mesh           kube.Mesh
	dualStack      bool
	services       map[string]*corev1.Service
	slices         map[string]*discoveryv1.EndpointSlice
	pods           map[string]*corev1.Pod
	nodes          map[string]*corev1.Node
	namespaces     map[string]*corev1.Namespace
	foreign        map[registry.WorkloadKey]*registry.WorkloadInstance
	ofService      map[string][]*discoveryv1.EndpointSlice // of slices, by service; nil: not known
	allServices    map[string]*corev1.Service
	allSlices      map[string]*discoveryv1.EndpointSlice
	allPods        map[string]*corev1.Pod
}

func newWorld(options kube.Options, mesh kube.Mesh) *world {
	w := &world{
		cluster: string(options.ClusterID), suffix: options.DomainSuffix, system: options.SystemNamespace, mesh: mesh,
		dualStack: options.DualStack, services: map[string]*corev1.Service{}, slices: map[string]*discoveryv1.EndpointSlice{},
		pods: map[string]*corev1.Pod{}, nodes: map[string]*corev1.Node{}, namespaces: map[string]*corev1.Namespace{},
		foreign: map[registry.WorkloadKey]*registry.WorkloadInstance{},
	}
	if w.suffix == "" {
		w.suffix = "cluster.local"
	}
	if w.system == "" {
		w.system = "istio-system"
	}
	if w.mesh.TrustDomain == "" {
		w.mesh.TrustDomain = "cluster.local"
	}
	return w
}

// put adds an object that a watch shows.
func (w *world) put(object any) {
	switch o := object.(type) {
	case *corev1.Service:
		w.services[o.Namespace+"/"+o.Name] = o
	case *discoveryv1.EndpointSlice:
		w.slices[o.Namespace+"/"+o.Name], w.ofService = o, nil
	case *corev1.Pod:
		if o.Status.Phase != corev1.PodFailed {
			w.pods[o.Namespace+"/"+o.Name] = o
		}
	case *corev1.Node:
		w.nodes[o.Name] = o
	case *corev1.Namespace:
		w.namespaces[o.Name] = o
	}
}

// narrow keeps only the objects in watched namespaces.
func (w *world) narrow() {
	w.allServices, w.allSlices, w.allPods, w.ofService = w.services, w.slices, w.pods, nil
	w.services, w.slices, w.pods = map[string]*corev1.Service{}, map[string]*discoveryv1.EndpointSlice{}, map[string]*corev1.Pod{}
	for k, o := range w.allServices {
		if w.watched(o.Namespace) {
			w.services[k] = o
		}
	}
	for k, o := range w.allSlices {
		if w.watched(o.Namespace) {
			w.slices[k] = o
		}
	}
	for k, o := range w.allPods {
		if w.watched(o.Namespace) {
			w.pods[k] = o
		}
	}
}

func (w *world) watched(namespace string) bool {
	if len(w.mesh.DiscoverySelectors) == 0 {
		return true
	}
	n := w.namespaces[namespace]
	if n == nil {
		return false
	}
	for i := range w.mesh.DiscoverySelectors {
		s, err := metav1.LabelSelectorAsSelector(&w.mesh.DiscoverySelectors[i])
		if err == nil && s.Matches(labels.Set(n.Labels)) {
			return true
		}
	}
	return false
}

func (w *world) hostname(namespace, name string) string {
	return name + "." + namespace + ".svc." + w.suffix
}

func (w *world) shard() string { return "Kubernetes/" + w.cluster }
