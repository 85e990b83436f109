// SPDX-License-Identifier: Apache-2.0

package aggregate

import "time"

// The endpoints of a replaced registry stay until its successor has synced, because the successor
// has written all its endpoints by then. Registries do not announce that they have synced. The
// Controller therefore checks when the successor is added, in each call of its HasSynced, and
// periodically in Run while a successor has not synced.

// pruneInterval is the interval of the checks in Run.
const pruneInterval = time.Second

// pruneAfter removes the endpoints of the predecessors of a registry, now or when it has synced.
func (c *Controller) pruneAfter(reg *registration) {
	c.mu.Lock()
	c.unpruned = append(c.unpruned, reg)
	c.mu.Unlock()
	if c.prune() {
		return
	}
	select {
	case c.pruning <- struct{}{}:
	default:
	}
}

// prune removes the endpoints of the predecessors of all registries that have synced. It returns
// true if no registry is left to wait for.
func (c *Controller) prune() (done bool) {
	c.mu.Lock()
	waiting := c.unpruned
	c.unpruned = nil
	c.mu.Unlock()
	var left []*registration
	for _, reg := range waiting {
		synced := false
		c.guarded("HasSynced of a registry", reg.shard, func() { synced = reg.instance.HasSynced() })
		if synced {
			c.updating(reg.shard, reg.writer.Complete)
		} else {
			left = append(left, reg)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, reg := range left {
		if !reg.retired {
			c.unpruned = append(c.unpruned, reg)
		}
	}
	return len(c.unpruned) == 0
}

// pruneUntil calls prune until stop is closed.
func (c *Controller) pruneUntil(stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		case <-c.pruning:
		}
		for !c.prune() {
			timer := time.NewTimer(pruneInterval)
			select {
			case <-stop:
				timer.Stop()
				return
			case <-timer.C:
			}
		}
	}
}
