// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"sync"

	"github.com/pilotkit/pilotkit/internal/ipaddr"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/failure"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/index"
)

// cache has the state of all streams: the layers of the providers, the selections, the index of the
// subscribed names and the connections. Code that encodes or sends does not hold its mutex, and
// neither do calls of the program's code, except for the methods of Provided and the functions of
// Changes.
type cache struct {
	failures *failure.List
	// partSize and largeSize are the values of the constants with these names.
	partSize, largeSize int

	mu sync.Mutex
	// layers are the layers of the providers, or nil before the first state was published. Clients get no
	// response before, because a response from an empty state would remove all resources of a proxy that
	// reconnects.
	layers layers
	// epoch counts the pushes.
	epoch uint64
	// conns are the connections of identified clients.
	conns map[*connection]struct{}
	// addresses finds the connections of a proxy.
	addresses map[address][]*connection
	index     index.Index[*selection]
	// selections are all selections, by the namespaces of their views.
	selections map[string]map[selectionKey][]*selection
	recalled   []recalled
	// leaving are the selections that are about to leave the index.
	leaving []*selection
	// unprepared are the selections that wait for the first push, or whose first snapshot could not
	// be built; the next push prepares them.
	unprepared []*selection
	// proxyUpdates counts the calls of ProxyUpdate; see stream.enter.
	proxyUpdates uint64
	recent       recentChanges
	// progress is closed when a proxy answers or leaves; nil if no caller waits.
	progress chan struct{}
}

// address is one address of a proxy.
type address struct {
	cluster registry.ClusterID
	ip      string
}

func newCache() *cache {
	return &cache{
		failures:  &failure.List{},
		partSize:  partSize.Get(),
		largeSize: largeSize.Get(),

		conns:      make(map[*connection]struct{}),
		addresses:  make(map[address][]*connection),
		selections: make(map[string]map[selectionKey][]*selection),
	}
}

// locked calls f with the lock held.
func (c *cache) locked(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f()
}

// The methods below are called with mu held, unless they say otherwise.

// list and unlist maintain addresses.
func (c *cache) list(conn *connection) {
	for _, ip := range conn.proxy.IPAddresses {
		key := address{conn.proxy.ClusterID, ipaddr.Canonical(ip)}
		c.addresses[key] = append(c.addresses[key], conn)
	}
}

func (c *cache) unlist(conn *connection) {
	if conn.proxy == nil {
		return
	}
	for _, ip := range conn.proxy.IPAddresses {
		key := address{conn.proxy.ClusterID, ipaddr.Canonical(ip)}
		if c.addresses[key] = index.Removed(c.addresses[key], conn); len(c.addresses[key]) == 0 {
			delete(c.addresses, key)
		}
	}
}

// resolver returns the resolver for selections of a view, with the present layers.
func (c *cache) resolver(v view) resolver {
	return resolver{view: v.Value(), layers: c.layers, failed: c.failures}
}

// awaitProgress returns a channel that progressed closes.
func (c *cache) awaitProgress() <-chan struct{} {
	if c.progress == nil {
		c.progress = make(chan struct{})
	}
	return c.progress
}

// progressed wakes the callers that wait for proxies.
func (c *cache) progressed() {
	if c.progress != nil {
		close(c.progress)
		c.progress = nil
	}
}
