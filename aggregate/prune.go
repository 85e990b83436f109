// SPDX-License-Identifier: Apache-2.0

package aggregate

import "time"

// The endpoints of a registry that was replaced stay until its successor has
// written what it has, which is when it has synced. Registries do not announce
// that, so it is looked at when the successor takes over, whenever HasSynced of
// the Controller is called, and by Run as long as there is one to wait for.

// pruneInterval is how often Run looks.
const pruneInterval = time.Second

// pruneAfter prunes after a registry has taken over, now or when it has synced.
func (c *Controller) pruneAfter(reg *registration) {
	reg.writer.Take(reg.shard)
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

// prune prunes after the registries that have synced, and reports whether all
// have.
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

// pruneUntil prunes until stop is closed.
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
