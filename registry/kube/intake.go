// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"github.com/pilotkit/pilotkit/registry"
)

// event is one entry of the registry's queue.
type event struct {
	// key and object are the current state of an object. It is a *service, *slice, *pod, *node or
	// *namespace, which is a typed nil if the object is deleted; or a *Mesh; or a
	// *registry.WorkloadInstance of another registry, for which deleted reports the deletion.
	key     objectKey
	object  any
	deleted bool
	// inspect is called after all earlier events have been handled.
	inspect func(*engine)
	// relist has all objects of a kind; missing ones are deleted.
	relist *relist
}

// WorkloadInstanceHandler receives a WorkloadEntry of this cluster from its registry, for example
// as the handler in that registry's AppendWorkloadHandler: services select it by its labels. For
// EventDelete only the key of the workload is used. Pods, and workloads of other clusters, are
// ignored, because they are endpoints in their own clusters. Received workloads are never announced
// to the workload handlers of this registry. The instance must not be modified afterwards.
func (c *Controller) WorkloadInstanceHandler(w *registry.WorkloadInstance, e registry.Event) {
	deleted := e == registry.EventDelete
	if w == nil || w.Endpoint == nil && !deleted || w.Kind == registry.Pod || w.Cluster != c.options.ClusterID {
		return
	}
	c.publisher.Enqueue(event{object: w, deleted: deleted})
}

// UpdateMesh replaces the state of the mesh. Only resulting differences are reported.
func (c *Controller) UpdateMesh(m Mesh) { c.publisher.Enqueue(event{object: &m}) }

// handle handles all pending events as one batch.
func (c *Controller) handle(events []event) {
	// Inspections see the state after the batch.
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
