// SPDX-License-Identifier: Apache-2.0

package serviceentry

import (
	"slices"

	"github.com/pilotkit/pilotkit/registry"
)

// AppendServiceHandler implements registry.Controller.
func (c *Controller) AppendServiceHandler(handler registry.ServiceHandler) {
	c.SubscribeServices(handler)
}

// AppendWorkloadHandler implements registry.Controller. Handlers are notified of the healthy
// WorkloadEntries of this registry that have an IP address, but not of workloads of other
// registries.
func (c *Controller) AppendWorkloadHandler(handler func(*registry.WorkloadInstance, registry.Event)) {
	c.SubscribeWorkloads(handler)
}

// SubscribeServices is like AppendServiceHandler, but returns a cancel function:
// once cancel has returned no further change is handed to the handler; one that
// is being handled may still be in progress. cancel may be called many times,
// from anywhere.
func (c *Controller) SubscribeServices(handler registry.ServiceHandler) (cancel func()) {
	return c.publisher.SubscribeServices(handler)
}

// SubscribeWorkloads is like AppendWorkloadHandler, but returns a cancel function,
// as SubscribeServices does.
func (c *Controller) SubscribeWorkloads(handler registry.WorkloadHandler) (cancel func()) {
	return c.publisher.SubscribeWorkloads(handler)
}

// ownWorkloads returns the WorkloadEntries of a state as handlers see them, sorted by namespace and
// name. Only the goroutine that handles batches calls it.
func (c *Controller) ownWorkloads(s *state) []*registry.WorkloadInstance {
	own := map[objectName]*workload{}
	for next := s.next.Load(); next != nil; next = next.to.next.Load() {
		for _, r := range next.own {
			if _, known := own[r.cell]; !known {
				own[r.cell] = r.value
			}
		}
	}
	for namespace, s := range c.spaces {
		for name, w := range s.own {
			k := objectName{namespace, name}
			if _, replaced := own[k]; !replaced {
				own[k] = w
			}
		}
	}
	var out []*registry.WorkloadInstance
	for _, w := range own {
		if instance := w.announced(); instance != nil {
			out = append(out, instance)
		}
	}
	slices.SortFunc(out, registry.CompareWorkloads)
	return out
}
