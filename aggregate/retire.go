// SPDX-License-Identifier: Apache-2.0

package aggregate

import (
	"maps"
	"slices"

	"github.com/pilotkit/pilotkit/registry"
)

// A program may have wired the workload events of a registry directly to another one
// that selects workloads (a registry.WorkloadReceiver), past the Controller. When
// the former is deleted or replaced, the program's handler stays and nothing says
// that the workloads are gone. So the Controller itself subscribes to the
// workloads of a registry that has left:
//
//  1. What the registry has announced is retracted, of which a registry that does not
//     replay to late handlers will not tell again: receivers get a Delete, or the
//     successor's workload if that is another one. So are the workloads of the replay,
//     which may have been announced before the registry was added.
//  2. An event that the registry sends later has reached the receivers through the
//     host's handler, which was registered before. It is retracted as well.
//  3. When the successor sends an event of such a workload, receivers get its state
//     once more: an event of the predecessor may have overtaken it.
//
// One queue makes all these calls, so that the last one for a workload is right.

// retraction is a workload about which receivers may know something wrong.
type retraction struct {
	from     *registration
	workload *registry.WorkloadInstance
	event    registry.Event
}

// retire retracts what a registry that has left replays, and announces from now on.
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

// retractLeft retracts what a registry that has left had announced.
func (c *Controller) retractLeft(reg *registration) {
	c.mu.Lock()
	for _, w := range slices.SortedFunc(maps.Values(reg.left), registry.CompareWorkloads) {
		c.retractions.Push(retraction{reg, w, registry.EventUpdate})
	}
	clear(reg.left)
	c.mu.Unlock()
	c.retractions.Drain()
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
	workload, event := c.successors(successor, r.workload.Key()), registry.EventUpdate
	switch {
	case workload == nil:
		workload, event = r.workload, registry.EventDelete
	case r.from != successor && r.event != registry.EventDelete && r.workload.Equal(workload):
		return // receivers have the right one
	}
	for _, receiver := range c.receivers(successor) {
		receiver.WorkloadInstanceHandler(workload, event)
	}
}

// successors returns the successor's workload of a key, or nil, and makes the key
// contested: from now on receivers get what the successor has after each of its
// events, lest an event of the predecessor overtakes one.
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

// contestLocked has receivers get a workload of a successor again if its
// predecessor has sent something else.
func (c *Controller) contestLocked(reg *registration, w *registry.WorkloadInstance, e registry.Event) {
	if _, ok := reg.contested[w.Key()]; ok {
		c.retractions.Push(retraction{reg, w, e})
	}
}
