// SPDX-License-Identifier: Apache-2.0

package serviceentry

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

// showHost keeps the directory.
func (c *Controller) showHost(h *host) {
	h.shown = h.services()
	if len(h.bindings) == 0 {
		c.directory.remove(h)
	} else {
		c.directory.put(h)
	}
}
