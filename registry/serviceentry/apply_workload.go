// SPDX-License-Identifier: Apache-2.0

package serviceentry

import (
	"net/netip"
	"slices"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/registry"
)

// selectAll gives an entry the workloads that it selects.
func (b *batch) selectAll(e *entry) {
	for _, g := range b.space(e.object.namespace).addSelector(e) {
		for w := g.first; w != nil; w = w.next {
			b.selectOne(e, w)
		}
	}
}

func (b *batch) selectOne(e *entry, w *workload) {
	if !e.mayServe(w.instance) {
		return
	}
	m := &member{entry: e, workload: w, endpoints: e.endpointsOf(w.base, w.unix, w.instance.PortMap)}
	e.link(m)
	w.members = append(w.members, m)
	b.addMember(m, e.bindings...)
}

// deselect takes all workloads away from an entry.
func (b *batch) deselect(e *entry) {
	if !e.selects {
		return
	}
	s := b.space(e.object.namespace)
	s.removeSelector(e)
	b.dropSpace(e.object.namespace)
	for m := e.first; m != nil; {
		next := m.next
		b.removeMember(m, e.bindings...)
		if i := slices.Index(m.workload.members, m); i >= 0 {
			m.workload.members = slices.Delete(m.workload.members, i, i+1)
		}
		m.previous, m.next = nil, nil
		m = next
	}
	e.first = nil
}

// putOwn takes the new state of a WorkloadEntry; nil if it is gone.
func (b *batch) putOwn(name objectName, config *configstore.Config) {
	old := b.own[name]
	var curr *workload
	if config != nil {
		if instance := b.conversion.workload(config); instance != nil {
			if old != nil && old.instance.Equal(instance) && old.unix == isUnixEntry(config) {
				b.interner.release(instance.Endpoint.Shared)
				return
			}
			curr = newWorkload(instance, isUnixEntry(config))
		}
	}
	if curr != nil {
		// The store knows best what its own WorkloadEntries are.
		if k := curr.instance.Key(); b.foreign[k] != nil {
			b.putForeign(k, nil)
		}
	}
	b.replaceWorkload(old, curr)
	b.noteProxy(old, curr)
}

// putForeign takes the new state of a workload of another registry; nil if it is
// gone.
func (b *batch) putForeign(k registry.WorkloadKey, instance *registry.WorkloadInstance) {
	old := b.foreign[k]
	if instance != nil && b.isOwn(k) {
		// What this registry announces may come back, but is no news.
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

// isUnixEntry reports whether the address of a WorkloadEntry is a unix socket.
func isUnixEntry(config *configstore.Config) bool {
	t, ok := workloadTemplate(config)
	return ok && isUnix(t.spec.GetAddress())
}

// isOwn reports whether a key is that of a WorkloadEntry of this registry.
func (b *batch) isOwn(k registry.WorkloadKey) bool {
	return k.Kind == registry.WorkloadEntry && k.Cluster == b.options.ClusterID &&
		b.own[objectName{k.Namespace, k.Name}] != nil
}

// replaceWorkload puts one workload in the place of another; either may be nil.
func (b *batch) replaceWorkload(old, curr *workload) {
	if old == nil && curr == nil {
		return
	}
	b.workloads = append(b.workloads, workloadChange{old, curr})
	if !b.options.WorkloadEntriesOnly {
		if old != nil {
			b.removeWorkload(old)
		}
		if curr != nil {
			b.addWorkload(curr)
		}
	}
	b.setWorkload(old, curr)
	if old != nil {
		b.interner.release(old.base.Shared)
	}
}

func (b *batch) addWorkload(w *workload) {
	g := b.space(w.instance.Namespace).join(w)
	for _, e := range g.entries {
		b.selectOne(e, w)
	}
}

func (b *batch) removeWorkload(w *workload) {
	for _, m := range w.members {
		m.entry.unlink(m)
		b.removeMember(m, m.entry.bindings...)
	}
	w.members = nil
	w.leave()
	b.dropSpace(w.instance.Namespace)
}

// setWorkload keeps the tables of workloads.
func (b *batch) setWorkload(old, curr *workload) {
	if old != nil {
		if old.foreign {
			b.setForeign(old.instance.Key(), nil)
		} else {
			delete(b.own, objectName{old.instance.Namespace, old.instance.Name})
		}
		b.setPod(old, false)
		b.noteFormer(old, curr)
	}
	if curr != nil {
		if curr.foreign {
			b.setForeign(curr.instance.Key(), curr)
		} else {
			b.own[objectName{curr.instance.Namespace, curr.instance.Name}] = curr
		}
		b.setPod(curr, true)
	}
}

// noteProxy asks for a push to the proxy of a WorkloadEntry that is new, has
// other labels, or another address. Istio 1.30 does not for an address, and does
// for host names, which no proxy is known by.
func (b *batch) noteProxy(old, curr *workload) {
	if curr == nil {
		return
	}
	if old != nil && old.base.Address() == curr.base.Address() &&
		old.base.Attributes().Labels.Equal(curr.base.Attributes().Labels) {
		return
	}
	b.pushProxy(curr)
}

func (b *batch) pushProxy(w *workload) {
	if ip, err := netip.ParseAddr(w.base.Address()); err == nil {
		b.pushAddress(ip.Unmap())
	}
}

func (b *batch) pushAddress(ip netip.Addr) {
	if b.proxies == nil {
		b.proxies = map[netip.Addr]struct{}{}
	}
	b.proxies[ip] = struct{}{}
}

// setForeign keeps the table of the workloads of others.
func (c *Controller) setForeign(k registry.WorkloadKey, w *workload) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if w == nil {
		delete(c.foreign, k)
	} else {
		c.foreign[k] = w
	}
}

// space returns the selectors and workloads of a namespace.
func (b *batch) space(namespace string) *space {
	s := b.spaces[namespace]
	if s == nil {
		s = newSpace(b.interner.seed)
		b.spaces[namespace] = s
	}
	return s
}

func (b *batch) dropSpace(namespace string) {
	if s := b.spaces[namespace]; s != nil && s.empty() {
		delete(b.spaces, namespace)
	}
}
