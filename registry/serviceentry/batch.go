// SPDX-License-Identifier: Apache-2.0

package serviceentry

import (
	"net/netip"
	"slices"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/internal/limit"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/internal/publish"
)

// batch is the transition from one state to the next. It changes only itself and data that readers
// cannot see, until announce publishes the next state as a whole.
//
// Controller.batch is reused until a large batch makes it too large.
type batch struct {
	*Controller
	conversion conversion
	pending    pending
	// change is the argument of Publish.
	change publish.Change
	// prev is the state before.
	prev *state

	// hosts are the hosts with work, and newHosts the subset that readers cannot see yet.
	hosts    []*host
	newHosts map[hostKey]*host
	// entries are the entries whose view changes.
	entries []*entry
	// located has the next list of contributions for each changed address.
	located   map[string]located
	workloads []workloadChange
	// proxies are the addresses that need a ProxyUpdate.
	proxies map[proxyAddress]struct{}
	// former are addresses that pods have lost.
	former map[netip.Addr][]registry.ClusterID
	// spare are hostWorks to use again.
	spare []*hostWork
}

func newBatch(c *Controller) *batch {
	b := &batch{
		Controller: c, pending: pending{
			entries: newLatest[objectName, *configstore.Config](), own: newLatest[objectName, *configstore.Config](),
			foreign: newLatest[registry.WorkloadKey, *registry.WorkloadInstance](),
		},
		newHosts: map[hostKey]*host{}, located: map[string]located{},
	}
	b.change.Proxies, b.change.WorkloadChanges = b.updatedProxies, b.announcedWorkloads
	return b
}

// maxSpare is the maximum capacity, in elements, that is kept for the next batch.
const maxSpare limit.Size = 256

// reset makes the batch ready for the next one.
func (b *batch) reset() {
	for _, h := range b.hosts {
		b.recycle(h.work)
		h.work = nil
	}
	for _, e := range b.entries {
		e.touched = false
	}
	if max(len(b.hosts), len(b.located), len(b.workloads)) > maxSpare.Get() {
		b.batch = newBatch(b.Controller) // not a copy: the functions of a change are bound to its batch
		return
	}
	b.pending.reset()
	b.change.Reset()
	b.prev = nil
	clear(b.proxies)
	clear(b.former)
	clear(b.newHosts)
	clear(b.located)
	b.hosts, b.entries, b.workloads = publish.Emptied(b.hosts), publish.Emptied(b.entries), publish.Emptied(b.workloads)
}

// recycle keeps the room that the changes of a host needed. The changes
// themselves belong to the updater now.
func (b *batch) recycle(w *hostWork) {
	if len(b.spare) >= maxSpare.Get() {
		return
	}
	*w = hostWork{added: publish.Emptied(w.added[:cap(w.added)]), removed: publish.Emptied(w.removed[:cap(w.removed)])}
	b.spare = append(b.spare, w)
}

// workloadChange is the change of one workload. Both may be nil: then it came and
// went.
type workloadChange struct{ prev, curr *workload }

// work returns the pending changes of a host and adds the host to b.hosts.
func (b *batch) work(h *host) *hostWork {
	if h.work == nil {
		if n := len(b.spare); n > 0 {
			h.work, b.spare[n-1] = b.spare[n-1], nil
			b.spare = b.spare[:n-1]
		} else {
			h.work = &hostWork{}
		}
		b.hosts = append(b.hosts, h)
	}
	return h.work
}

// addContribution makes the endpoints of a contribution count for the bindings.
func (b *batch) addContribution(m *contribution, bindings ...*binding) {
	b.locate(m, true)
	b.includeContribution(m, bindings...)
}

func (b *batch) includeContribution(m *contribution, bindings ...*binding) {
	for _, binding := range bindings {
		b.work(binding.host)
		if binding.roundRobin == nil {
			binding.host.add(m)
		}
	}
}

// removeContribution undoes addContribution, and gives back the attributes of the contribution if
// they are its own.
func (b *batch) removeContribution(m *contribution, bindings ...*binding) {
	b.locate(m, false)
	b.excludeContribution(m, bindings...)
	b.interner.release(m.attributes)
}

func (b *batch) excludeContribution(m *contribution, bindings ...*binding) {
	for _, binding := range bindings {
		b.work(binding.host)
		if binding.roundRobin == nil {
			binding.host.remove(m)
		}
	}
}

// noteService records the change of a service.
func (b *batch) noteService(h *host, prev, curr *registry.Service, event registry.Event) {
	w := b.work(h)
	w.services, w.push = true, true
	switch event {
	case registry.EventAdd:
		w.event = registry.EventAdd
	case registry.EventUpdate:
		if w.event != registry.EventAdd {
			w.event = registry.EventUpdate
		}
	case registry.EventDelete:
	}
	b.change.ServiceChanges = append(b.change.ServiceChanges, publish.ServiceChange{Prev: prev, Curr: curr, Event: event})
}

// complete computes the endpoints of each host from the changes of entries and workloads, in the
// order of the hosts.
func (b *batch) complete() {
	slices.SortFunc(b.hosts, func(h, i *host) int { return h.compare(i.hostKey) })
	for _, h := range b.hosts {
		h.complete(b.touch)
	}
}

// touch marks an entry, so that its view is replaced.
func (b *batch) touch(e *entry) {
	if !e.touched {
		e.touched = true
		b.entries = append(b.entries, e)
	}
}
