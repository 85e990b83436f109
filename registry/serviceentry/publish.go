// SPDX-License-Identifier: Apache-2.0

package serviceentry

import (
	"slices"

	"github.com/pilotkit/pilotkit/registry"
)

// publish shows the next state to readers.
func (b *batch) publish() {
	c := b.Controller
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range b.entries {
		e.shown = e.bindings
	}
	for _, bi := range b.bindings {
		bi.shown = bi.services
	}
	for _, h := range b.hosts {
		for _, bi := range h.bindings {
			bi.shownOpen = bi.open
		}
		h.endpoints = h.work.next
		if h.work.services {
			c.showHost(h)
		}
	}
	for _, a := range b.addresses {
		if a.added {
			c.addresses.add(a.member)
		} else {
			c.addresses.remove(a.member)
		}
	}
	if len(b.services) > 0 {
		c.services = editServices(c.services, b.services)
		c.view.Store(newView(c.services, c.options.AddressAllocation, c.logger))
	}
}

// showHost keeps the tables by which services and their endpoints are found.
func (c *Controller) showHost(h *host) {
	h.shown = h.services()
	n := c.names[h.hostname]
	i := slices.Index(n.hosts, h)
	switch {
	case len(h.bindings) == 0:
		delete(c.hosts, h.hostKey)
		if i >= 0 {
			n.hosts = slices.Delete(n.hosts, i, i+1)
		}
	case i < 0:
		c.hosts[h.hostKey] = h
		n.hosts = append(n.hosts, h)
	}
	n.best = nil
	for _, h := range n.hosts {
		if s := h.shown[0]; n.best == nil || compareAge(s, n.best) < 0 {
			n.best = s
		}
	}
	if len(n.hosts) == 0 {
		delete(c.names, h.hostname)
		return
	}
	c.names[h.hostname] = n
}

// name is what is known of a host name in all namespaces.
type name struct {
	// best is the service that GetService returns.
	best  *registry.Service
	hosts []*host
}
