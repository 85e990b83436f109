// SPDX-License-Identifier: Apache-2.0

package aggregate

import (
	"github.com/pilotkit/pilotkit/registry"
)

// A host may have wired the workload events of a registry directly to another one
// that selects workloads (a registry.WorkloadReceiver), past the Controller. When
// the former is deleted or replaced, the host's handler stays and nothing says
// that the workloads are gone. So the Controller itself subscribes to the
// workloads of a registry that has left:
//
//  1. The replay has all workloads that are left. Each is retracted: receivers get
//     a Delete, or nothing if the successor has it.
//  2. An event that the registry sends later has reached the receivers through the
//     host's handler, which was registered before. It is retracted as well; if the
//     successor has that workload, receivers get the successor's.
//  3. A workload that was retracted before the successor announced it is passed to
//     the receivers again when it does.
//
// One queue makes all these calls, so that the last one for a workload is right.

// retraction is a workload about which receivers may know something wrong.
type retraction struct {
	from     *registration
	workload *registry.WorkloadInstance
	// initial: the workload is one of the replay.
	initial bool
}

// retire retracts the workloads of a registry that has left, from now on.
func (c *Controller) retire(reg *registration) {
	if len(c.receivers(nil)) == 0 {
		return
	}
	initial := true
	reg.events.SubscribeWorkloads(func(w *registry.WorkloadInstance, _ registry.Event) {
		c.mu.Lock()
		back := c.merged.Load().find(func(r *registration) bool { return r.is(reg.instance) }) != nil
		if !back {
			c.retractions.Push(retraction{reg, w, initial})
		}
		c.mu.Unlock()
		c.retractions.Drain()
	})
	c.mu.Lock()
	initial = false
	c.mu.Unlock()
}

// receivers returns the registries, but for one of them, that take the workloads
// of others.
func (c *Controller) receivers(but *registration) []registry.WorkloadReceiver {
	var out []registry.WorkloadReceiver
	for _, reg := range c.merged.Load().registrations {
		if receiver, ok := registry.As[registry.WorkloadReceiver](reg.instance); ok && reg != but {
			out = append(out, receiver)
		}
	}
	return out
}

// retract corrects what receivers know of a workload.
func (c *Controller) retract(r retraction) {
	successor := c.merged.Load().find(func(reg *registration) bool { return reg.shard == r.from.shard })
	if successor != nil {
		c.subscribeToWorkloads(successor)
	}
	current := c.successors(successor, r.workload.Key())
	for _, receiver := range c.receivers(successor) {
		switch {
		case current == nil:
			receiver.WorkloadInstanceHandler(r.workload, registry.EventDelete)
		case !r.initial:
			receiver.WorkloadInstanceHandler(current, registry.EventUpdate)
		}
	}
}

// successors returns the successor's workload of a key. If it has none, it is
// noted that receivers need it when it comes.
func (c *Controller) successors(successor *registration, key registry.WorkloadKey) *registry.WorkloadInstance {
	if successor == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if n, ok := successor.workloads[key]; ok && n.by == successor {
		return n.value
	}
	if successor.retracted == nil {
		successor.retracted = map[registry.WorkloadKey]struct{}{}
	}
	successor.retracted[key] = struct{}{}
	return nil
}

// restoreLocked has a workload passed to the receivers again if it was retracted.
func (c *Controller) restoreLocked(reg *registration, w *registry.WorkloadInstance, e registry.Event) {
	if _, ok := reg.retracted[w.Key()]; ok && e != registry.EventDelete {
		delete(reg.retracted, w.Key())
		c.retractions.Push(retraction{from: reg, workload: w})
	}
}
