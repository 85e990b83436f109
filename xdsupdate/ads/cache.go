// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"slices"
	"sync"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// cache holds what can be served, who wants what of it, and who has what.
type cache struct {
	generators bool // new views have to wait for generators

	mu sync.Mutex
	// ready is false until the first state has been published; nobody is answered
	// before, since an answer from nothing would take everything away from a
	// proxy that reconnects.
	ready bool
	table table
	views map[View]*view
	conns map[*connection]struct{}
	// subscribers is the reverse index: who has to hear of a change.
	subscribers map[resourceName][]*subscription
	wildcards   map[string]map[*subscription]struct{}
	// progress, if somebody waits, is closed when a proxy answers or leaves.
	progress chan struct{}
	// fresh lists the views whose generators have not been asked yet.
	fresh []*view
}

func newCache(generators bool) *cache {
	return &cache{
		generators:  generators,
		table:       newTable(),
		views:       make(map[View]*view),
		conns:       make(map[*connection]struct{}),
		subscribers: make(map[resourceName][]*subscription),
		wildcards:   make(map[string]map[*subscription]struct{}),
	}
}

// enterLocked returns the state of a view for one more proxy.
func (c *cache) enterLocked(key View) *view {
	v := c.views[key]
	if v == nil {
		v = &view{View: key, ready: !c.generators}
		c.views[key] = v
		if c.generators {
			c.fresh = append(c.fresh, v)
		}
	}
	v.proxies++
	return v
}

func (c *cache) leaveLocked(v *view) {
	if v.proxies--; v.proxies == 0 && c.views[v.View] == v {
		delete(c.views, v.View)
	}
}

// subscribeLocked and unsubscribeLocked maintain the reverse index.
func (c *cache) subscribeLocked(s *subscription, name string) {
	key := resourceName{s.typeURL, name}
	c.subscribers[key] = append(c.subscribers[key], s)
}

func (c *cache) unsubscribeLocked(s *subscription, name string) {
	key := resourceName{s.typeURL, name}
	list := c.subscribers[key]
	for i, other := range list {
		if other == s {
			list[i] = list[len(list)-1]
			list[len(list)-1] = nil
			list = list[:len(list)-1]
			break
		}
	}
	if len(list) == 0 {
		delete(c.subscribers, key)
		return
	}
	c.subscribers[key] = list
}

func (c *cache) setWildcardLocked(s *subscription, wildcard bool) {
	if s.wildcard == wildcard {
		return
	}
	s.wildcard = wildcard
	if wildcard {
		if c.wildcards[s.typeURL] == nil {
			c.wildcards[s.typeURL] = make(map[*subscription]struct{})
		}
		c.wildcards[s.typeURL][s] = struct{}{}
		c.table.names(s.conn.view, s.typeURL, s.mark)
		return
	}
	delete(c.wildcards[s.typeURL], s)
	for name, e := range s.entries {
		if !e.named {
			s.set(name, entry{})
			delete(s.gone, name)
		}
	}
}

// change is what a push makes of the table and the views.
type change struct {
	hosts map[registry.Hostname]*host // nil: removed
	// names are the built-in resources that may have changed.
	names map[resourceName]struct{}
	// overlays are new results of generators.
	overlays map[*view]map[string]map[string]*resource
}

// publish makes a change visible and sends everybody what is new to them. It
// must not be called concurrently.
func (c *cache) publish(ch change, report func(error)) {
	c.mu.Lock()
	touched := make(map[*connection]struct{})
	for name, h := range ch.hosts {
		c.table.set(name, h)
	}
	for name := range ch.names {
		c.changedLocked(name, touched)
	}
	for v, made := range ch.overlays {
		c.overlaidLocked(v, made, touched)
	}
	if !c.ready {
		c.ready = true
		for conn := range c.conns {
			touched[conn] = struct{}{}
		}
	}
	var unencoded []*resource
	for conn := range touched {
		unencoded = conn.appendPendingLocked(unencoded)
	}
	c.mu.Unlock()

	encodeAll(unencoded, report)

	c.mu.Lock()
	defer c.mu.Unlock()
	for conn := range touched {
		conn.flushLocked()
	}
}

// changedLocked marks a resource for all that are subscribed to it.
func (c *cache) changedLocked(name resourceName, touched map[*connection]struct{}) {
	if name.typeURL == envoy.RouteType {
		if number, ok := envoy.ParseHTTPRouteName(name.name); ok {
			for _, v := range c.views {
				delete(v.routes, number)
			}
		}
	}
	for _, s := range c.subscribers[name] {
		s.mark(name.name)
		touched[s.conn] = struct{}{}
	}
	if wildcardBuiltIn(name.typeURL) {
		for s := range c.wildcards[name.typeURL] {
			s.mark(name.name)
			touched[s.conn] = struct{}{}
		}
	}
}

// overlaidLocked replaces what generators made for a view, by type.
func (c *cache) overlaidLocked(v *view, made map[string]map[string]*resource, touched map[*connection]struct{}) {
	if v.overlay == nil {
		v.overlay = make(map[string]map[string]*resource)
	}
	v.ready = true
	for typeURL, resources := range made {
		for _, names := range []map[string]*resource{v.overlay[typeURL], resources} {
			for name := range names {
				c.overlaidNameLocked(v, resourceName{typeURL, name})
			}
		}
		v.overlay[typeURL] = resources
	}
	for conn := range c.conns {
		if conn.view == v {
			touched[conn] = struct{}{}
		}
	}
}

func (c *cache) overlaidNameLocked(v *view, name resourceName) {
	for _, s := range c.subscribers[name] {
		if s.conn.view == v {
			s.mark(name.name)
		}
	}
	for s := range c.wildcards[name.typeURL] {
		if s.conn.view == v {
			s.mark(name.name)
		}
	}
}

// progressedLocked wakes those who wait for proxies.
func (c *cache) progressedLocked() {
	if c.progress != nil {
		close(c.progress)
		c.progress = nil
	}
}

// readyViews returns the views that generators have been asked for.
func (c *cache) readyViews() []*view {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []*view
	for _, v := range c.views {
		if v.ready {
			out = append(out, v)
		}
	}
	return out
}

// takeFresh returns the views that generators have to be asked for.
func (c *cache) takeFresh() []*view {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := c.fresh
	c.fresh = nil
	return out
}

// find returns the connections of a proxy.
func (c *cache) find(cluster registry.ClusterID, ip string) []*connection {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []*connection
	for conn := range c.conns {
		if conn.proxy.ClusterID == cluster && slices.Contains(conn.proxy.IPAddresses, ip) {
			out = append(out, conn)
		}
	}
	return out
}
