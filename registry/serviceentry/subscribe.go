// SPDX-License-Identifier: Apache-2.0

package serviceentry

import (
	"slices"
	"sync"

	"github.com/pilotkit/pilotkit/registry"
)

// AppendServiceHandler implements registry.Controller.
func (c *Controller) AppendServiceHandler(handler registry.ServiceHandler) {
	c.SubscribeServices(handler)
}

// AppendWorkloadHandler implements registry.Controller. Handlers are told of this
// registry's WorkloadEntries that have an IP address and count: those that are
// not healthy do not. They are never told of the workloads of others.
func (c *Controller) AppendWorkloadHandler(handler func(*registry.WorkloadInstance, registry.Event)) {
	c.SubscribeWorkloads(handler)
}

// SubscribeServices is AppendServiceHandler with a way out: once cancel has
// returned no further change is handed to the handler; one that is being handled
// may still be in progress. cancel may be called many times, from anywhere.
func (c *Controller) SubscribeServices(handle registry.ServiceHandler) (cancel func()) {
	h := &handler[registry.ServiceHandler]{handle: handle}
	c.queue.Add(event{subscribe: func() {
		for s := range c.services.All() {
			if h.cancelled.Load() {
				return
			}
			handle(nil, s, registry.EventAdd)
		}
		c.serviceHandlers.add(h)
	}})
	return sync.OnceFunc(func() { c.serviceHandlers.cancel(h) })
}

// SubscribeWorkloads is AppendWorkloadHandler with a way out, as
// SubscribeServices is.
func (c *Controller) SubscribeWorkloads(handle registry.WorkloadHandler) (cancel func()) {
	h := &handler[registry.WorkloadHandler]{handle: handle}
	c.queue.Add(event{subscribe: func() {
		for _, w := range c.announcedWorkloads() {
			if h.cancelled.Load() {
				return
			}
			handle(w, registry.EventAdd)
		}
		c.workloadHandlers.add(h)
	}})
	return sync.OnceFunc(func() { c.workloadHandlers.cancel(h) })
}

func (c *Controller) announcedWorkloads() []*registry.WorkloadInstance {
	var out []*registry.WorkloadInstance
	for _, s := range c.spaces {
		for _, w := range s.own {
			if i := w.announced(); i != nil {
				out = append(out, i)
			}
		}
	}
	slices.SortFunc(out, func(i, j *registry.WorkloadInstance) int {
		return objectName{i.Namespace, i.Name}.compare(objectName{j.Namespace, j.Name})
	})
	return out
}
