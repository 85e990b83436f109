// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/kube"
	"github.com/pilotkit/pilotkit/registry/registrytest"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// TestInstance runs the suite of registries on one that is handed its objects.
func TestInstance(t *testing.T) {
	registrytest.TestInstance(t, func(testing.TB) registrytest.Subject {
		k := kube.New(nil, &recorder{index: xdsupdate.NewEndpointIndex()}, kube.Options{ClusterID: "east"})
		return newRenamed(k, handing{k}).subject()
	})
}

// writer is the way of objects into a registry. Put and remove may be called by
// several goroutines, and from within handlers.
type writer interface {
	put(objects ...runtime.Object)
	remove(objects ...runtime.Object)
	// catchUp returns when all writes are visible, and handlers were notified of them.
	catchUp()
}

// handing is a writer that hands objects to the registry.
type handing struct{ *kube.Controller }

func (h handing) put(objects ...runtime.Object) {
	for _, o := range objects {
		h.Put(o)
	}
}

func (h handing) remove(objects ...runtime.Object) {
	for _, o := range objects {
		h.Remove(o)
	}
}

func (h handing) catchUp() { h.Drain() }

// renamed is a registry of a cluster under the host names that the suite chooses,
// which a cluster cannot have. It shows services in clones of its own, and answers
// for proxies by the pods at their addresses.
type renamed struct {
	*kube.Controller
	writer writer

	mu sync.Mutex
	// named has the suite's choices for each of the cluster's services.
	named  map[registry.Hostname]chosen
	clones map[*registry.Service]*registry.Service
}

// chosen are the fields that a cluster determines itself.
type chosen struct {
	hostname registry.Hostname
	created  time.Time
}

func newRenamed(k *kube.Controller, w writer) *renamed {
	return &renamed{
		Controller: k, writer: w, named: map[registry.Hostname]chosen{}, clones: map[*registry.Service]*registry.Service{},
	}
}

func (r *renamed) subject() registrytest.Subject {
	return registrytest.Subject{
		Apart:    true, // a cluster has Services and EndpointSlices
		Registry: r, Set: r.set, Remove: r.remove, SetWorkload: r.setWorkload, RemoveWorkload: r.removeWorkload,
		CatchUp: r.writer.catchUp,
	}
}

func objectName(hostname registry.Hostname) string {
	return strings.ReplaceAll(string(hostname), ".", "-")
}

func clusterName(hostname registry.Hostname, namespace string) registry.Hostname {
	return registry.Hostname(objectName(hostname) + "." + namespace + ".svc.cluster.local")
}

func (r *renamed) clone(s *registry.Service) *registry.Service {
	if s == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.clones[s]
	if c == nil {
		copied := *s
		c = &copied
		c.Hostname, c.CreationTime = r.named[s.Hostname].hostname, r.named[s.Hostname].created
		r.clones[s] = c
	}
	return c
}

// ofSuite reports whether the suite has set a service.
func (r *renamed) ofSuite(s *registry.Service) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, ok := r.named[s.Hostname]
	return ok
}

func (r *renamed) ServiceSnapshot() *registry.ServiceSet { return nil }

func (r *renamed) all() *registry.ServiceSet {
	var out []*registry.Service
	for _, s := range r.Controller.Services() {
		if r.ofSuite(s) {
			out = append(out, r.clone(s))
		}
	}
	return registry.NewServiceSet(out...)
}

func (r *renamed) Services() []*registry.Service { return r.all().List() }

func (r *renamed) GetService(hostname registry.Hostname) *registry.Service {
	return r.all().Get(hostname)
}

func (r *renamed) instances(all []*registry.ServiceInstance) []*registry.ServiceInstance {
	out := make([]*registry.ServiceInstance, len(all))
	for i, instance := range all {
		ep := *instance.Endpoint
		ep.ServicePort = instance.ServicePort.Number // the suite sorts by it
		out[i] = &registry.ServiceInstance{Service: r.clone(instance.Service), ServicePort: instance.ServicePort, Endpoint: &ep}
	}
	slices.SortStableFunc(out, func(a, b *registry.ServiceInstance) int { return registry.CompareEndpoints(a.Endpoint, b.Endpoint) })
	return out
}

func (r *renamed) InstancesByPort(s *registry.Service, port uint32) []*registry.ServiceInstance {
	if s == nil {
		return nil
	}
	asked := *s
	asked.Hostname = clusterName(s.Hostname, s.Attributes.Namespace)
	return r.instances(r.Controller.InstancesByPort(&asked, port))
}

func (r *renamed) GetProxyServiceInstances(proxy *registry.Proxy) []*registry.ServiceInstance {
	var out []*registry.ServiceInstance
	seen := map[string]bool{}
	for _, namespace := range []string{"retail", "money", "churn", "one", "two"} {
		for _, address := range proxy.IPAddresses {
			id := namespace + "/" + address
			if seen[id] || proxy.Namespace != "" && proxy.Namespace != namespace {
				continue
			}
			seen[id] = true
			asked := registry.Proxy{ID: "pod-" + objectName(registry.Hostname(address)) + "." + namespace, Namespace: namespace, IPAddresses: []string{address}}
			out = append(out, r.instances(r.Controller.GetProxyServiceInstances(&asked))...)
		}
	}
	return out
}

func (r *renamed) SubscribeServices(handler registry.ServiceHandler) (cancel func()) {
	return r.Controller.SubscribeServices(func(prev, curr *registry.Service, e registry.Event) {
		if r.ofSuite(curr) {
			handler(r.clone(prev), r.clone(curr), e)
		}
	})
}

func (r *renamed) AppendServiceHandler(handler registry.ServiceHandler) { r.SubscribeServices(handler) }

// SubscribeWorkloads leaves out the pods that are made for endpoints.
func (r *renamed) SubscribeWorkloads(handler registry.WorkloadHandler) (cancel func()) {
	return r.Controller.SubscribeWorkloads(func(w *registry.WorkloadInstance, e registry.Event) {
		if !strings.HasPrefix(w.Name, "pod-") {
			handler(w, e)
		}
	})
}

func (r *renamed) AppendWorkloadHandler(handler func(*registry.WorkloadInstance, registry.Event)) {
	r.SubscribeWorkloads(handler)
}

func (r *renamed) set(s *registry.Service, endpoints []*registry.Endpoint) {
	namespace, name := s.Attributes.Namespace, objectName(s.Hostname)
	meta := metav1.ObjectMeta{Name: name, Namespace: namespace, CreationTimestamp: metav1.NewTime(s.CreationTime)}
	object := &corev1.Service{ObjectMeta: meta}
	slice := &discoveryv1.EndpointSlice{AddressType: discoveryv1.AddressTypeIPv4, ObjectMeta: metav1.ObjectMeta{
		Name: name, Namespace: namespace, Labels: map[string]string{discoveryv1.LabelServiceName: name},
	}}
	for _, p := range s.Ports {
		object.Spec.Ports = append(object.Spec.Ports, corev1.ServicePort{Name: p.Name, Port: int32(p.Number), TargetPort: intstr.FromInt32(1)})
	}
	var objects []runtime.Object
	for _, e := range endpoints {
		number := int32(e.EndpointPort)
		if !slices.ContainsFunc(slice.Ports, func(p discoveryv1.EndpointPort) bool { return *p.Name == e.ServicePortName }) {
			slice.Ports = append(slice.Ports, discoveryv1.EndpointPort{Name: &e.ServicePortName, Port: &number})
		}
		if !slices.ContainsFunc(slice.Endpoints, func(x discoveryv1.Endpoint) bool { return x.Addresses[0] == e.Address() }) {
			slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{Addresses: []string{e.Address()}})
			pod := readyPod(namespace, "pod-"+objectName(registry.Hostname(e.Address())), e.Address())
			pod.Labels = nil
			objects = append(objects, pod)
		}
	}
	r.mu.Lock()
	r.named[clusterName(s.Hostname, namespace)] = chosen{s.Hostname, s.CreationTime}
	r.mu.Unlock()
	r.writer.put(append(objects, object, slice)...)
}

func (r *renamed) remove(hostname registry.Hostname, namespace string) {
	meta := metav1.ObjectMeta{Name: objectName(hostname), Namespace: namespace}
	r.writer.remove(&corev1.Service{ObjectMeta: meta}, &discoveryv1.EndpointSlice{ObjectMeta: meta})
}

func (r *renamed) setWorkload(w *registry.WorkloadInstance) {
	p := readyPod(w.Namespace, w.Name, w.Endpoint.Address())
	p.Labels = w.Endpoint.Attributes().Labels
	r.writer.put(p)
}

func (r *renamed) removeWorkload(namespace, name string) {
	r.writer.remove(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}})
}
