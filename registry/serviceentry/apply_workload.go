// SPDX-License-Identifier: Apache-2.0

package serviceentry

import (
	"net/netip"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/registry"
)

// selectAll gives an entry the workloads that it selects.
func (b *batch) selectAll(e *entry) {
	for _, g := range b.space(e.config.Namespace).addSelector(e) {
		for _, w := range g.workloads {
			b.selectOne(e, w)
		}
	}
}

func (b *batch) selectOne(e *entry, w *workload) {
	if !e.mayServe(w) {
		return
	}
	m := selectedContribution(e, e.definition, w)
	e.addSelected(m)
	m.next, w.first = w.first, m
	b.addContribution(m, e.bindings...)
}

// deselect takes all workloads away from an entry.
func (b *batch) deselect(e *entry) {
	if !e.selects {
		return
	}
	b.space(e.config.Namespace).removeSelector(e)
	for _, m := range e.selected {
		b.removeContribution(m, e.bindings...)
		m.workload.unlink(m)
	}
	e.selected = nil
}

// unlink takes a contribution off the list of a workload, which has one for each entry
// that selects it.
func (w *workload) unlink(m *contribution) {
	for p := &w.first; *p != nil; p = &(*p).next {
		if *p == m {
			*p, m.next = m.next, nil
			return
		}
	}
}

// putOwn takes the new state of a WorkloadEntry; nil if it is gone.
func (b *batch) putOwn(name objectName, config *configstore.Config) {
	old := b.ownWorkload(name)
	var curr *workload
	if config != nil {
		curr = b.conversion.ownWorkload(config)
	}
	if old != nil && curr != nil && old.sameAs(curr) {
		b.interner.release(curr.attributes)
		old.config.Store(config)
		return
	}
	if curr != nil {
		// The store knows best what its own WorkloadEntries are.
		if k := curr.key(); b.foreign[k] != nil {
			b.putForeign(k, nil)
		}
	}
	b.replaceWorkload(old, curr)
	b.noteProxy(old, curr)
}

func (c *Controller) ownWorkload(name objectName) *workload {
	if s := c.spaces[name.namespace]; s != nil {
		return s.own[name.name]
	}
	return nil
}

// putForeign takes the new state of a workload of another registry; nil if it is
// gone.
func (b *batch) putForeign(k registry.WorkloadKey, instance *registry.WorkloadInstance) {
	old := b.foreign[k]
	if instance != nil && b.isOwn(k) {
		// Another registry may return a workload that this registry announced. Ignore it.
		instance = nil
	}
	if instance == nil {
		b.replaceWorkload(old, nil)
		return
	}
	if old == nil || !old.instance.Equal(instance) {
		b.replaceWorkload(old, b.conversion.foreignWorkload(instance))
	}
}

// isOwn reports whether a key is that of a WorkloadEntry of this registry.
func (b *batch) isOwn(k registry.WorkloadKey) bool {
	return k.Kind == registry.WorkloadEntry && k.Cluster == b.options.ClusterID &&
		b.ownWorkload(objectName{k.Namespace, k.Name}) != nil
}

// replaceWorkload puts one state of a workload in the place of another; either
// may be nil.
func (b *batch) replaceWorkload(old, curr *workload) {
	if old == nil && curr == nil {
		return
	}
	b.workloads = append(b.workloads, workloadChange{old, curr})
	namespace := curr.or(old).namespace()
	s := b.space(namespace)
	// The new state joins before the old one leaves, so that a group of one does
	// not have to be made again.
	if curr != nil {
		s.join(curr)
	}
	if old != nil {
		b.removeContributions(old)
		old.leave()
	}
	if curr != nil && !b.options.WorkloadEntriesOnly {
		for _, e := range curr.group.entries {
			b.selectOne(e, curr)
		}
	}
	b.setWorkload(s, old, curr)
	if old != nil {
		b.interner.release(old.attributes)
	}
	b.dropSpace(namespace)
}

// or returns w, or x if w is nil.
func (w *workload) or(x *workload) *workload {
	if w == nil {
		return x
	}
	return w
}

func (b *batch) removeContributions(w *workload) {
	for m := w.first; m != nil; m = w.first {
		w.first, m.next = m.next, nil
		m.entry.removeSelected(m)
		b.removeContribution(m, m.entry.bindings...)
	}
}

// setWorkload keeps the tables of workloads.
func (b *batch) setWorkload(s *space, old, curr *workload) {
	if old != nil {
		b.setPod(old, false)
		b.noteFormer(old, curr)
	}
	if curr != nil {
		b.setPod(curr, true)
	}
	if w := curr.or(old); w.foreign() {
		b.setForeign(w.key(), curr)
	} else if curr != nil {
		s.own[w.key().Name] = curr
	} else {
		delete(s.own, w.key().Name)
	}
}

// setForeign keeps the table of the workloads of others.
func (c *Controller) setForeign(k registry.WorkloadKey, w *workload) {
	c.foreignMu.Lock()
	defer c.foreignMu.Unlock()
	if w == nil {
		delete(c.foreign, k)
	} else {
		c.foreign[k] = w
	}
}

// noteProxy asks for a push to the proxy of a WorkloadEntry that is new, has
// other labels, or another address. Istio 1.30 does not for an address, and does
// for host names, which no proxy is known by.
func (b *batch) noteProxy(old, curr *workload) {
	if curr == nil {
		return
	}
	if old != nil && old.addressOfConfig == curr.addressOfConfig &&
		old.attributes.labels == curr.attributes.labels {
		return
	}
	b.pushProxy(curr)
}

// space returns the objects of a namespace.
func (b *batch) space(namespace string) *space {
	s := b.spaces[namespace]
	if s == nil {
		s = newSpace()
		b.spaces[namespace] = s
	}
	return s
}

func (b *batch) dropSpace(namespace string) {
	if s := b.spaces[namespace]; s != nil && s.empty() {
		delete(b.spaces, namespace)
	}
}

// pushProxy asks for a push to the proxy of a workload, if it has an IP address.
func (b *batch) pushProxy(w *workload) {
	if ip, err := netip.ParseAddr(w.address()); err == nil {
		b.pushAddress(proxyAddress{b.clusterOf(w), ip.Unmap()})
	}
}

func (b *batch) pushAddress(p proxyAddress) {
	if b.proxies == nil {
		b.proxies = map[proxyAddress]struct{}{}
	}
	b.proxies[p] = struct{}{}
}
