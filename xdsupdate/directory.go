// SPDX-License-Identifier: Apache-2.0

package xdsupdate

import (
	"hash/maphash"
	"iter"
	"sync"

	"go.uber.org/atomic"

	"github.com/pilotkit/pilotkit/registry"
)

// directory finds services by name. Readers take no lock: they see a table whose
// chains are immutable and replaced as a whole. A sync.Map does the same at four
// times the memory.
type directory struct {
	seed  maphash.Seed
	table atomic.Pointer[table]

	mu sync.Mutex // held by writers of the table; taken after that of a service
	n  int
}

// table has a power of two of chains.
type table struct{ chains []atomic.Pointer[link] }

type link struct {
	service *service
	next    *link
}

// serviceName is how services are found.
type serviceName struct {
	hostname  registry.Hostname
	namespace string
}

const minChains = 64

func newDirectory() *directory {
	d := &directory{seed: maphash.MakeSeed()}
	d.table.Store(&table{chains: make([]atomic.Pointer[link], minChains)})
	return d
}

// find returns a service, or nil.
func (d *directory) find(name serviceName) *service {
	for l := d.chain(d.table.Load(), name).Load(); l != nil; l = l.next {
		if l.service.name == name {
			return l.service
		}
	}
	return nil
}

// findOrAdd returns a service, which it adds if it is not there.
func (d *directory) findOrAdd(name serviceName) *service {
	if s := d.find(name); s != nil {
		return s
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if s := d.find(name); s != nil {
		return s
	}
	s := &service{name: name}
	chain := d.chain(d.table.Load(), name)
	chain.Store(&link{service: s, next: chain.Load()})
	d.n++
	d.resizeLocked()
	return s
}

// remove takes a service out.
func (d *directory) remove(s *service) {
	d.mu.Lock()
	defer d.mu.Unlock()
	chain := d.chain(d.table.Load(), s.name)
	var kept *link
	for l := chain.Load(); l != nil; l = l.next {
		if l.service != s {
			kept = &link{service: l.service, next: kept}
		}
	}
	chain.Store(kept)
	d.n--
	d.resizeLocked()
}

// all returns the services: each that is there all the time, once.
func (d *directory) all() iter.Seq[*service] {
	return func(yield func(*service) bool) {
		t := d.table.Load()
		for i := range t.chains {
			for l := t.chains[i].Load(); l != nil; l = l.next {
				if !yield(l.service) {
					return
				}
			}
		}
	}
}

// resizeLocked keeps the chains short and the table in proportion.
func (d *directory) resizeLocked() {
	old := d.table.Load()
	size := len(old.chains)
	switch {
	case d.n > size*3/2:
		size *= 2
	case d.n < size/8 && size > minChains:
		size /= 4
	default:
		return
	}
	t := &table{chains: make([]atomic.Pointer[link], max(size, minChains))}
	for i := range old.chains {
		for l := old.chains[i].Load(); l != nil; l = l.next {
			chain := d.chain(t, l.service.name)
			chain.Store(&link{service: l.service, next: chain.Load()})
		}
	}
	d.table.Store(t)
}

func (d *directory) chain(t *table, name serviceName) *atomic.Pointer[link] {
	return &t.chains[maphash.Comparable(d.seed, name)&uint64(len(t.chains)-1)]
}
