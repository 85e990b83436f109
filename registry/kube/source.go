// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"go.uber.org/atomic"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/pilotkit/pilotkit/registry/kube/internal/reach"
)

// source lists and watches one kind of objects through a reflector of client-go. It keeps no
// objects, but converts and queues them.
type source struct {
	kind string
	// example is an object of the kind.
	example runtime.Object
	client  cache.ListerWatcher
	// known returns the objects in the registry, as delete events.
	known func(*engine) []event
	queue func(event)
	// optional treats a kind that the server rejects as empty.
	optional   bool
	maxBackoff time.Duration
	// answered is closed when a complete list was queued, or the kind counts as empty.
	answered chan struct{}
	once     sync.Once
	// listed is set when a complete list was queued.
	listed atomic.Bool
	// requests has the result of the last request.
	requests *reach.Watcher
}

// relist is a complete list of the objects of a kind.
type relist struct {
	objects []event
	known   func(*engine) []event
}

// apply replaces all objects of the kind in the engine by the list.
func (r *relist) apply(e *engine) {
	listed := make(map[objectKey]struct{}, len(r.objects))
	for _, o := range r.objects {
		listed[o.key] = struct{}{}
		e.apply(o)
	}
	for _, gone := range r.known(e) {
		if _, ok := listed[gone.key]; !ok {
			e.apply(gone)
		}
	}
}

func (s *source) run(ctx context.Context) {
	reach.Reflect(ctx, "kube."+s.kind, s.client, s.example, s, s.maxBackoff)
}

// hasAnswered reports whether all objects of the kind were queued once, or the kind counts as
// empty.
func (s *source) hasAnswered() bool {
	select {
	case <-s.answered:
		return true
	default:
		return false
	}
}

// Add implements cache.ReflectorStore.
func (s *source) Add(object any) error {
	s.queue(eventOf(object))
	return nil
}

// Update implements cache.ReflectorStore.
func (s *source) Update(object any) error { return s.Add(object) }

// Delete implements cache.ReflectorStore.
func (s *source) Delete(object any) error {
	e := eventOf(object)
	s.queue(gone(e))
	return nil
}

// Replace implements cache.ReflectorStore.
func (s *source) Replace(objects []any, _ string) error {
	r := &relist{objects: make([]event, 0, len(objects)), known: s.known}
	for i, o := range objects {
		r.objects = append(r.objects, eventOf(o))
		objects[i] = nil
	}
	s.queue(event{relist: r})
	s.listed.Store(true)
	s.once.Do(func() { close(s.answered) })
	return nil
}

// Resync implements cache.ReflectorStore.
func (s *source) Resync() error { return nil }

// Transformer implements cache.TransformingStore. It trims the objects that the reflector collects
// for a list to the fields that the conversions read.
func (s *source) Transformer() cache.TransformFunc {
	return func(object any) (any, error) {
		trimObject(object)
		return object, nil
	}
}

// gone returns the delete event of an object.
func gone(e event) event {
	switch e.object.(type) {
	case *service:
		e.object = (*service)(nil)
	case *slice:
		e.object = (*slice)(nil)
	case *pod:
		e.object = (*pod)(nil)
	case *node:
		e.object = (*node)(nil)
	case *namespace:
		e.object = (*namespace)(nil)
	}
	return e
}

// eventOf returns the event for the current state of an object of any kind.
func eventOf(object any) event {
	switch o := object.(type) {
	case *corev1.Service:
		s := convertService(o)
		return event{key: s.objectKey, object: s}
	case *discoveryv1.EndpointSlice:
		s := convertSlice(o)
		return event{key: s.objectKey, object: s}
	case *corev1.Pod:
		p := convertPod(o)
		return event{key: p.objectKey, object: p}
	case *corev1.Node:
		n := convertNode(o)
		return event{key: objectKey{name: n.name}, object: n}
	case *corev1.Namespace:
		n := convertNamespace(o)
		return event{key: objectKey{name: n.name}, object: n}
	}
	panic("kube: an object of an unknown kind")
}

// trimObject clears the fields that eventOf does not read, which are most of an object.
func trimObject(object any) {
	switch o := object.(type) {
	case *corev1.Service:
		trimMeta(&o.ObjectMeta)
	case *discoveryv1.EndpointSlice:
		trimMeta(&o.ObjectMeta)
	case *corev1.Pod:
		trimPod(o)
	case *corev1.Node:
		trimMeta(&o.ObjectMeta)
		o.Spec, o.Status = corev1.NodeSpec{}, corev1.NodeStatus{Addresses: o.Status.Addresses}
	case *corev1.Namespace:
		trimMeta(&o.ObjectMeta)
		o.Spec, o.Status = corev1.NamespaceSpec{}, corev1.NamespaceStatus{}
	}
}

func trimMeta(m *metav1.ObjectMeta) { m.ManagedFields, m.Finalizers = nil, nil }

func trimPod(p *corev1.Pod) {
	trimMeta(&p.ObjectMeta)
	p.Annotations = keep(p.Annotations, annotationRedirection)
	spec, status := p.Spec, p.Status
	p.Spec = corev1.PodSpec{
		ServiceAccountName: spec.ServiceAccountName, NodeName: spec.NodeName, HostNetwork: spec.HostNetwork,
		Hostname: spec.Hostname, Subdomain: spec.Subdomain,
		Containers: trimContainers(spec.Containers), InitContainers: trimContainers(spec.InitContainers),
	}
	p.Status = corev1.PodStatus{Phase: status.Phase, Conditions: status.Conditions, PodIP: status.PodIP, PodIPs: status.PodIPs}
}

func trimContainers(all []corev1.Container) []corev1.Container {
	out := make([]corev1.Container, len(all))
	for i := range all {
		out[i] = corev1.Container{Ports: all[i].Ports, RestartPolicy: all[i].RestartPolicy}
	}
	return out
}

// The functions below return the objects of each kind in the engine, as delete events.

func knownServices(e *engine) []event {
	return e.known(func(s *space, add func(name string)) {
		for name, h := range s.hosts {
			if h.object != nil {
				add(name)
			}
		}
		for name := range s.deferredServices {
			add(name)
		}
	}, (*service)(nil))
}

func knownSlices(e *engine) []event {
	return e.known(func(s *space, add func(name string)) {
		for name := range s.slices {
			add(name)
		}
		for name := range s.deferredSlices {
			add(name)
		}
	}, (*slice)(nil))
}

func knownPods(e *engine) []event {
	out := e.known(func(s *space, add func(name string)) {
		for name := range s.deferredPods {
			add(name)
		}
	}, (*pod)(nil))
	e.pods.Entries(func(p *podEntry) bool {
		out = append(out, event{key: p.Key, object: (*pod)(nil)})
		return true
	})
	return out
}

func knownNodes(e *engine) []event {
	var out []event
	for name, n := range e.nodes {
		if n.object != nil {
			out = append(out, event{key: objectKey{name: name}, object: (*node)(nil)})
		}
	}
	return out
}

func knownNamespaces(e *engine) []event {
	var out []event
	for _, name := range e.spaceNames() {
		if e.spaces[name].object != nil {
			out = append(out, event{key: objectKey{name: name}, object: (*namespace)(nil)})
		}
	}
	return out
}

func (e *engine) known(names func(*space, func(name string)), absence any) []event {
	var out []event
	for _, namespace := range e.spaceNames() {
		names(e.spaces[namespace], func(name string) {
			out = append(out, event{key: objectKey{namespace, name}, object: absence})
		})
	}
	return out
}

const notFailed = "status.phase!=Failed"

// newSources returns the sources. The server omits failed pods, because these never recover.
func (c *Controller) newSources(client kubernetes.Interface) []*source {
	core, discovery := client.CoreV1(), client.DiscoveryV1()
	return []*source{
		newSource(c, client, "namespaces", &corev1.Namespace{}, knownNamespaces, core.Namespaces(), ""),
		newSource(c, client, "nodes", &corev1.Node{}, knownNodes, core.Nodes(), ""),
		newSource(c, client, "services", &corev1.Service{}, knownServices, core.Services(metav1.NamespaceAll), ""),
		newSource(c, client, "pods", &corev1.Pod{}, knownPods, core.Pods(metav1.NamespaceAll), notFailed),
		newSource(c, client, "endpointslices", &discoveryv1.EndpointSlice{}, knownSlices,
			discovery.EndpointSlices(metav1.NamespaceAll), ""),
	}
}

func newSource[L runtime.Object](
	c *Controller, client kubernetes.Interface, kind string, example runtime.Object, known func(*engine) []event,
	from reach.Resource[L], fields string,
) *source {
	s := &source{
		kind: kind, example: example, known: known, queue: func(e event) { c.publisher.Enqueue(e) }, maxBackoff: c.options.MaxBackoff,
		optional: slices.Contains(c.options.Optional, kind), answered: make(chan struct{}),
	}
	s.requests = reach.New(client, func(err error) {
		c.options.Logger.Warn("a kind of objects cannot be read", slog.String("kind", kind), slog.Any("error", err))
	})
	s.client = reach.ListWatch(client, from, func(o *metav1.ListOptions) { o.FieldSelector = fields }, s.do)
	return s
}

// SourceError reports that a kind of objects cannot be read at present. The objects that were read
// before stay.
type SourceError struct {
	// Kind is the resource, for example "endpointslices".
	Kind string
	Err  error
}

// Error returns "list endpointslices: " and the cause.
func (e SourceError) Error() string { return "list " + e.Kind + ": " + e.Err.Error() }

// Unwrap returns Err.
func (e SourceError) Unwrap() error { return e.Err }

// Errors returns the kinds of objects that cannot be read at present, because the API server is
// unreachable or rejects the request; none if all can be read. They are retried. A rejected request
// or connection shows at once. A server that does not respond, or drops connections, shows within
// seconds, even while client-go still waits for the request.
func (c *Controller) Errors() []SourceError {
	var out []SourceError
	for _, s := range c.sources {
		if err := s.requests.Err(); err != nil {
			out = append(out, SourceError{s.kind, err})
		}
	}
	return out
}

// do makes a request.
func (s *source) do(ctx context.Context, request func() error) error {
	err := s.requests.Do(ctx, request)
	if s.optional && ctx.Err() == nil && (apierrors.IsForbidden(err) || apierrors.IsNotFound(err)) {
		s.once.Do(func() { close(s.answered) })
	}
	return err
}
