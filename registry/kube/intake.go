// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"github.com/pilotkit/pilotkit/registry"
)

// event is something that happens to the registry.
type event struct {
	// key and object are the present state of an object: a *service, *slice, *pod,
	// *node or *namespace, nil of its type if it is gone; or a *Mesh, or a
	// *registry.WorkloadInstance of another registry, of which deleted says whether
	// it is gone.
	key     objectKey
	object  any
	deleted bool
	// inspect is called when what came before has been handled.
	inspect func(*engine)
	// relist has all objects of a kind; what is not among them is gone.
	relist *relist
}

// message is what the queue delivers: an event to the registry or, if change is
// set, one of the changes that events led to, to the handlers.
type message struct {
	event
	change *change
}

func (m message) isEvent() bool { return m.change == nil }

// enqueue hands an event to the goroutine that handles it.
func (c *Controller) enqueue(e event) { c.queue.Push(message{event: e}) }

// WorkloadInstanceHandler takes a WorkloadEntry of this cluster from the registry
// that has it, for example as the handler in its AppendWorkloadHandler: services
// select it by its labels. For EventDelete only the key of the workload counts. Pods,
// and the workloads of other clusters, are ignored: they are endpoints in their own
// clusters. No workload that was taken is ever announced to the workload handlers of
// this registry. The instance must not be modified any more.
func (c *Controller) WorkloadInstanceHandler(w *registry.WorkloadInstance, e registry.Event) {
	deleted := e == registry.EventDelete
	if w == nil || w.Endpoint == nil && !deleted || w.Kind == registry.Pod || w.Cluster != c.options.ClusterID {
		return
	}
	c.enqueue(event{object: w, deleted: deleted})
}

// UpdateMesh replaces the state of the mesh. What does not differ is not reported.
func (c *Controller) UpdateMesh(m Mesh) { c.enqueue(event{object: &m}) }

// handle makes one batch of everything that is waiting.
func (c *Controller) handle(messages []message) {
	// What is inspected is the state after the batch.
	for _, m := range messages {
		if m.inspect != nil {
			defer m.inspect(c.engine)
		}
	}
	defer c.engine.end() // also after a panic
	for _, m := range messages {
		if _, isNode := m.object.(*node); !isNode {
			c.engine.batch.otherwise = true
		}
		switch {
		case m.relist != nil:
			m.relist.apply(c.engine)
		case m.inspect == nil:
			c.engine.apply(m.event)
		}
	}
	c.engine.compute()
	c.announce()
}
