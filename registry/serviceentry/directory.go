// SPDX-License-Identifier: Apache-2.0

package serviceentry

import "github.com/pilotkit/pilotkit/registry"

// directory finds hosts by their names. Most names are defined in one namespace
// only, so that there is a table for further ones only where it is needed.
type directory map[registry.Hostname]listing

// listing is a host name in all namespaces.
type listing struct {
	// best is the service that GetService returns.
	best *registry.Service
	host *host
	// others are the hosts in further namespaces.
	others map[string]*host
}

func (d directory) find(k hostKey) *host {
	l := d[k.hostname]
	if l.host != nil && l.host.namespace == k.namespace {
		return l.host
	}
	return l.others[k.namespace]
}

// put adds a host, or takes notice of its services.
func (d directory) put(h *host) {
	l := d[h.hostname]
	switch {
	case l.host == nil:
		l.host = h
	case l.host != h:
		if l.others == nil {
			l.others = map[string]*host{}
		}
		l.others[h.namespace] = h
	}
	d[h.hostname] = l.choose(h)
}

// remove takes a host out, if it is in.
func (d directory) remove(h *host) {
	l := d[h.hostname]
	if l.host == h {
		l.host = nil
		for namespace, other := range l.others {
			l.host = other
			delete(l.others, namespace)
			break
		}
	} else {
		delete(l.others, h.namespace)
	}
	if l.host == nil {
		delete(d, h.hostname)
		return
	}
	d[h.hostname] = l.choose(h)
}

// choose finds the best service after one host changed or went.
func (l listing) choose(changed *host) listing {
	if l.best == nil || l.best.Attributes.Namespace != changed.namespace {
		// Another host has the best so far.
		if len(changed.shown) > 0 && (l.best == nil || registry.ComparePrecedence(changed.shown[0], l.best) < 0) {
			l.best = changed.shown[0]
		}
		return l
	}
	l.best = l.host.shown[0]
	for _, h := range l.others {
		if registry.ComparePrecedence(h.shown[0], l.best) < 0 {
			l.best = h.shown[0]
		}
	}
	return l
}

// all yields every host.
func (d directory) all(yield func(*host) bool) {
	for _, l := range d {
		if !yield(l.host) {
			return
		}
		for _, h := range l.others {
			if !yield(h) {
				return
			}
		}
	}
}
