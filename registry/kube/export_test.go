// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"

	"github.com/pilotkit/pilotkit/registry"
)

// Put queues the present state of an object, as a watch does.
func (c *Controller) Put(object any) { c.publisher.Enqueue(eventOf(object)) }

// Remove queues the absence of an object, as a watch does.
func (c *Controller) Remove(object any) { c.publisher.Enqueue(gone(eventOf(object))) }

// Convert applies the conversion before queueing to an object.
func Convert(object any) any { return eventOf(object).object }

// Trim clears the unused fields of an object in a list.
func Trim(object any) { trimObject(object) }

// Corrupt makes the registry show a service without endpoints.
func (c *Controller) Corrupt(hostname registry.Hostname) {
	v, _ := c.engine.hosts.Get(hostname)
	c.engine.hosts.Set(hostname, &hostView{object: v.object, service: v.service})
}

// Relist queues a complete list of a kind, as a reflector does.
func (c *Controller) Relist(kind string, objects ...any) {
	for _, s := range c.sources {
		if s.kind == kind {
			_ = s.Replace(objects, "") // It returns nil.
		}
	}
}

// Spaces returns the number of namespaces that the registry knows.
func (c *Controller) Spaces(ctx context.Context) (n int, err error) {
	err = c.inspect(ctx, func(e *engine) { n = len(e.spaces) })
	return n, err
}
