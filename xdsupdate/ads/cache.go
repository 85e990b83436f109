// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"sync"

	"github.com/pilotkit/pilotkit/internal/ipaddr"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/failure"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/index"
)

// cache has the state of all streams. Code that encodes or sends does not hold its mutex, and
// neither do calls of the program's code, except for the methods of Provided and the functions of
// Changes.
type cache struct {
	failures *failure.List
	// partSize and largeSize are the values of the constants with these names.
	partSize, largeSize int

	mu sync.Mutex
	state
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

		state: state{
			conns:      make(map[*connection]struct{}),
			addresses:  make(map[address][]*connection),
			selections: make(map[string]map[selectionKey][]*selection),
		},
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
