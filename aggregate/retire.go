// SPDX-License-Identifier: Apache-2.0

package aggregate

import (
	"maps"
	"slices"

	"github.com/pilotkit/pilotkit/registry"
)

// The host may have connected the workload events of a registry directly to another registry that
// selects workloads (a registry.WorkloadReceiver), without the Controller. When the first registry
// is deleted or replaced, the host's handler stays registered, and nobody sends it a Delete. The
// Controller therefore subscribes to the workloads of a deleted or replaced registry:
//
//  1. It retracts the announced workloads, because a registry without replay does not announce them
//     again. Receivers get a Delete, or the successor's workload if that differs. It also retracts
//     the workloads of the replay, which may have been announced before the registry was added.
//  2. It retracts workloads of later events, because these events have already reached the
//     receivers
//     through the host's handler, which was registered earlier.
//  3. When the successor sends an event for such a workload, receivers get its state once more,
//     because an event of the predecessor may have overtaken it.
//
// One queue makes all of these calls, so that the last call for a workload is the correct one.

// retraction is a workload whose state may be wrong at receivers.
type retraction struct {
	from     *registration
	workload *registry.WorkloadInstance
	event    registry.Event
}

// retire retracts the workloads that a deleted or replaced registry replays or announces later.
func (c *Controller) retire(reg *registration) {
	if len(c.receivers(nil)) == 0 {
		return
	}
	reg.events.SubscribeWorkloads(func(w *registry.WorkloadInstance, e registry.Event) {
		c.mu.Lock()
		back := c.merged.Load().find(func(r *registration) bool { return r.is(reg.instance) }) != nil
		if !back {
			c.retractions.Push(retraction{reg, w, e})
		}
		delete(reg.left, w.Key())
		c.mu.Unlock()
		c.retractions.Drain()
	})
}

// retractLeft retracts the workloads that a deleted or replaced registry had announced.
func (c *Controller) retractLeft(reg *registration) {
	c.mu.Lock()
	for _, w := range slices.SortedFunc(maps.Values(reg.left), registry.CompareWorkloads) {
		c.retractions.Push(retraction{reg, w, registry.EventUpdate})
	}
	clear(reg.left)
	c.mu.Unlock()
	c.retractions.Drain()
}

// receivers returns all registries except one that are WorkloadReceivers.
func (c *Controller) receivers(but *registration) []registry.WorkloadReceiver {
	var out []registry.WorkloadReceiver
	for _, reg := range c.merged.Load().registrations {
		if receiver, ok := registry.As[registry.WorkloadReceiver](reg.instance); ok && reg != but {
			out = append(out, receiver)
		}
	}
	return out
}

// retract sends receivers the correct state of a workload.
func (c *Controller) retract(r retraction) {
	successor := c.merged.Load().find(func(reg *registration) bool { return reg.shard == r.from.shard })
	workload, event := c.successors(successor, r.workload.Key()), registry.EventUpdate
	switch {
	case workload == nil:
		workload, event = r.workload, registry.EventDelete
	case r.from != successor && r.event != registry.EventDelete && r.workload.Equal(workload):
		return // receivers already have the successor's state
	}
	for _, receiver := range c.receivers(successor) {
		receiver.WorkloadInstanceHandler(workload, event)
	}
}

// successors returns the successor's workload with a key, or nil, and marks the key as contested:
// receivers also get the successor's state after each of its later events, because an event of the
// predecessor may overtake one of them.
func (c *Controller) successors(successor *registration, key registry.WorkloadKey) *registry.WorkloadInstance {
	if successor == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if successor.contested == nil {
		successor.contested = map[registry.WorkloadKey]struct{}{}
	}
	successor.contested[key] = struct{}{}
	if n, ok := successor.workloads[key]; ok && n.by == successor {
		return n.value
	}
	return nil
}

// contestLocked sends receivers a workload of a successor once more if the key is contested.
func (c *Controller) contestLocked(reg *registration, w *registry.WorkloadInstance, e registry.Event) {
	if _, ok := reg.contested[w.Key()]; ok {
		c.retractions.Push(retraction{reg, w, e})
	}
}
