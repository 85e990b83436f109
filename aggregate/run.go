// SPDX-License-Identifier: Apache-2.0

package aggregate

import "sync"

// Run runs the registries that were added before, and those of AddRegistryAndRun,
// until stop is closed, and returns when all of them have ended. A second call
// panics. When it has returned nobody is told of changes any more.
func (c *Controller) Run(stop <-chan struct{}) {
	c.begin(stop)
	c.queue.Run(stop)
	c.mu.Lock()
	c.stopped = true
	c.mu.Unlock()
	c.group.Wait()
}

func (c *Controller) begin(stop <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ran {
		panic("aggregate: Run called twice")
	}
	c.ran, c.stop = true, stop
	for _, reg := range c.merged.Load().registrations {
		c.startLocked(reg)
	}
}

// startLocked starts a registry, unless it was started or is gone.
func (c *Controller) startLocked(reg *registration) {
	if reg.started || reg.retired || c.stopped {
		return
	}
	reg.started = true
	stop := c.stop
	c.group.Go(func() { reg.run(stop) })
}

// run runs the registry until the first of all the reasons to stop.
func (r *registration) run(controller <-chan struct{}) {
	stop, done := make(chan struct{}), make(chan struct{})
	var watcher sync.WaitGroup
	watcher.Go(func() {
		defer close(stop)
		select {
		case <-controller:
		case <-r.own:
		case <-r.gone:
		case <-done:
		}
	})
	r.instance.Run(stop)
	close(done)
	watcher.Wait()
}

// HasSynced reports whether all registries have; true if there are none.
func (c *Controller) HasSynced() bool {
	for _, reg := range c.merged.Load().registrations {
		if !reg.instance.HasSynced() {
			return false
		}
	}
	return true
}
