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
	c.publisher.Enqueue(event{object: w, deleted: deleted})
}

// UpdateMesh replaces the state of the mesh. What does not differ is not reported.
func (c *Controller) UpdateMesh(m Mesh) { c.publisher.Enqueue(event{object: &m}) }

// handle makes one batch of everything that is waiting.
func (c *Controller) handle(events []event) {
	// What is inspected is the state after the batch.
	for _, ev := range events {
		if ev.inspect != nil {
			defer ev.inspect(c.engine)
		}
	}
	defer c.engine.end() // also after a panic
	for _, ev := range events {
		if _, isNode := ev.object.(*node); !isNode {
			c.engine.batch.otherwise = true
		}
		switch {
		case ev.relist != nil:
			ev.relist.apply(c.engine)
		case ev.inspect == nil:
			c.engine.apply(ev)
		}
	}
	c.engine.compute()
	c.announce()
}
