// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"cmp"
	"maps"
	"slices"

	"github.com/pilotkit/pilotkit/internal/pmap"
	"github.com/pilotkit/pilotkit/internal/topo"
	"github.com/pilotkit/pilotkit/registry"
)

// engine computes the content of the registry from the current objects. The result is a function of
// these objects and the mesh, independent of the order of events.
//
// Only the goroutine that handles a batch uses it. The data for readers is in persistent maps, and
// each batch publishes snapshots of them; the values are immutable. All other fields are indexes
// that find the effects of a change:
//
//	a change of  | affects
//	-------------|-----------------------------------------------------------
//	a Service    | its model; its slices, if their endpoints depend on what changed
//	a slice      | its endpoints, and its present and its former host
//	a Pod        | its attributes; the slices that name it, or its address
//	a Node       | the pods on it, if its locality changed; node port services
//	a Namespace  | its objects, if it is (de)selected; the models of its services;
//	             | all pods and slices, if it has the network of the cluster
//	a workload   | the services whose selectors match its former or its new labels
//	the mesh     | everything
type engine struct {
	options *Options
	mesh    *mesh
	// network is the network label of the system namespace.
	network string

	spaces map[string]*space
	nodes  map[string]*nodePods
	// absent are pods that slices reference and that do not exist.
	absent map[objectKey]*podNode
	// gatewayHosts are the hosts that may have network gateways, nodeHosts the hosts whose model
	// depends on nodes.
	gatewayHosts, nodeHosts map[*host]struct{}
	templates               templates
	// bare are the attributes of endpoints without a pod, by network.
	bare map[string]*registry.EndpointAttributes

	workloads map[registry.WorkloadKey]*registry.WorkloadInstance
	// byLabel finds workloads by namespace and one label.
	byLabel map[labelPair]map[registry.WorkloadKey]*registry.WorkloadInstance

	hosts       pmap.Live[registry.Hostname, *hostView]
	pods        pmap.Live[objectKey, podValue]
	holders     pmap.Live[string, holders]
	selectors   pmap.Live[labelPair, []*host]
	workloadsAt pmap.Live[string, []*registry.WorkloadInstance]
	gateways    []registry.NetworkGateway
	batch       batch
	// building is a buffer for the result of buildEndpoints.
	building []*registry.Endpoint
}

// space is a namespace. The Namespace object may be missing.
type space struct {
	name   string
	object *namespace // nil if the object is missing
	// selected is set if the namespace is watched. The objects of a namespace that is not watched
	// are kept, but not processed.
	selected bool
	hosts    map[string]*host
	slices   map[string]*sliceNode

	deferredServices map[string]*service
	deferredSlices   map[string]*slice
	deferredPods     map[string]*pod
}

// labelPair is a label in a namespace.
type labelPair struct{ namespace, key, value string }

func newEngine(o *Options) *engine {
	e := &engine{
		options: o, mesh: newMesh(o.Mesh, o.ClusterID), spaces: map[string]*space{}, nodes: map[string]*nodePods{},
		absent:       map[objectKey]*podNode{},
		gatewayHosts: map[*host]struct{}{}, nodeHosts: map[*host]struct{}{}, templates: newTemplates(),
		bare:      map[string]*registry.EndpointAttributes{},
		workloads: map[registry.WorkloadKey]*registry.WorkloadInstance{},
		byLabel:   map[labelPair]map[registry.WorkloadKey]*registry.WorkloadInstance{},
	}
	e.batch.change.Proxies, e.batch.change.WorkloadChanges = e.updatedProxies, e.announcedWorkloads
	return e
}

// space returns the space of a name; it creates one if there is none.
func (e *engine) space(name string) *space {
	s := e.spaces[name]
	if s == nil {
		s = &space{
			name: name, selected: e.mesh.selects(false, nil), hosts: map[string]*host{}, slices: map[string]*sliceNode{},
			deferredServices: map[string]*service{}, deferredSlices: map[string]*slice{}, deferredPods: map[string]*pod{},
		}
		e.spaces[name] = s
	}
	return s
}

// dropSpace drops a space that is as a new one: the Namespace is missing, and there is no object but
// watched pods.
func (e *engine) dropSpace(name string) {
	s := e.spaces[name]
	if s != nil && s.object == nil && len(s.hosts)+len(s.slices)+len(s.deferredServices)+len(s.deferredSlices)+len(s.deferredPods) == 0 {
		delete(e.spaces, name)
	}
}

// apply applies the current state of an object, or its absence.
func (e *engine) apply(ev event) {
	e.batch.spaces = append(e.batch.spaces, cmp.Or(ev.key.namespace, ev.key.name))
	switch o := ev.object.(type) {
	case *service:
		s := e.space(ev.key.namespace)
		applyIn(s, s.deferredServices, e.putService, ev.key, o)
	case *slice:
		s := e.space(ev.key.namespace)
		applyIn(s, s.deferredSlices, e.putSlice, ev.key, o)
	case *pod:
		s := e.space(ev.key.namespace)
		applyIn(s, s.deferredPods, e.putPod, ev.key, o)
	case *node:
		e.applyNode(ev.key.name, o)
	case *namespace:
		e.applyNamespace(ev.key.name, o)
	case *registry.WorkloadInstance:
		e.applyWorkload(o, ev.deleted)
	case *Mesh:
		e.applyMesh(*o)
	}
}

// applyIn applies the state of an object in a space, or keeps it if the space is not selected.
func applyIn[T any](s *space, deferred map[string]*T, put func(objectKey, *T), k objectKey, o *T) {
	switch {
	case s.selected:
		put(k, o)
	case o == nil:
		delete(deferred, k.name)
	default:
		deferred[k.name] = o
	}
}

func (e *engine) applyNamespace(name string, n *namespace) {
	s := e.space(name)
	old := s.object
	s.object = n
	e.selectSpace(s)
	if distributionOfSpace(old) != distributionOfSpace(n) {
		for _, h := range s.hosts {
			e.batch.rebuildService(h)
		}
	}
	if name != e.options.SystemNamespace {
		return
	}
	network := ""
	if n != nil {
		network = n.labels[topo.Network]
	}
	if network != e.network {
		e.network = network
		e.recompute()
	}
}

func distributionOfSpace(n *namespace) string {
	if n == nil {
		return ""
	}
	return n.trafficDistribution
}

// selectSpace recomputes whether a namespace is watched, and adds or removes its objects.
func (e *engine) selectSpace(s *space) {
	var labels registry.Labels
	if s.object != nil {
		labels = s.object.labels
	}
	selected := e.mesh.selects(s.object != nil, labels)
	if selected == s.selected {
		return
	}
	s.selected = selected
	if selected {
		e.restore(s)
	} else {
		e.deferSpace(s)
	}
}

func (e *engine) restore(s *space) {
	putAll(s, s.deferredServices, e.putService)
	putAll(s, s.deferredSlices, e.putSlice)
	putAll(s, s.deferredPods, e.putPod)
}

func putAll[T any](s *space, deferred map[string]*T, put func(objectKey, *T)) {
	for name, o := range deferred {
		put(objectKey{s.name, name}, o)
	}
	clear(deferred)
}

func (e *engine) deferSpace(s *space) {
	for name, h := range maps.Clone(s.hosts) {
		if h.object != nil {
			s.deferredServices[name] = h.object
			e.putService(objectKey{s.name, name}, nil)
		}
	}
	for name, n := range maps.Clone(s.slices) {
		s.deferredSlices[name] = n.read(s.name)
		e.putSlice(objectKey{s.name, name}, nil)
	}
	var pods []*pod
	e.pods.Entries(func(p *podEntry) bool {
		if p.Key.namespace == s.name {
			pods = append(pods, p.Value.podNode.read())
		}
		return true
	})
	for _, p := range pods {
		s.deferredPods[p.name] = p
		e.putPod(p.objectKey, nil)
	}
}

func (e *engine) applyMesh(m Mesh) {
	e.pods.Entries(func(p *podEntry) bool {
		e.space(p.Key.namespace) // it may have been dropped
		return true
	})
	e.mesh = newMesh(m, e.options.ClusterID)
	for _, s := range e.spaces {
		e.selectSpace(s)
	}
	e.recompute()
	for _, s := range e.spaces {
		for _, h := range s.hosts {
			e.batch.rebuildService(h)
		}
	}
}

// recompute marks all pods, slices and gateways.
func (e *engine) recompute() {
	clear(e.bare)
	e.pods.Entries(func(p *podEntry) bool {
		e.batch.rebuildPod(p.Value.podNode)
		return true
	})
	for _, s := range e.spaces {
		for _, h := range s.hosts {
			for _, n := range h.slices {
				e.batch.rebuildSlice(n)
			}
		}
	}
	e.batch.gateways = true
	e.batch.networks = true
}

// networkOf returns the network of an address of a workload with labels, by Istio's rules: that of
// the label, or else of the system namespace, or else of the cluster, or else of the range that
// contains the address.
func (e *engine) networkOf(address string, labels registry.Labels) string {
	if n := labels[topo.Network]; n != "" {
		return n
	}
	if e.network != "" {
		return e.network
	}
	if e.mesh.network != "" {
		return e.mesh.network
	}
	return e.mesh.networkAt(address)
}

// without returns a list without an element.
func without[T comparable](list []T, v T) []T {
	i := slices.Index(list, v)
	if i < 0 {
		return list
	}
	if len(list) == 1 {
		return nil
	}
	out := make([]T, 0, len(list)-1)
	return append(append(out, list[:i]...), list[i+1:]...)
}
