// SPDX-License-Identifier: Apache-2.0

package aggregate

import (
	"slices"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// PushesTo implements xdsupdate.ServicePusher: for a change that handlers are being
// notified of it returns the updater that the change's registry asks for the push
// of it. The services that come or go with a registry are pushed by the Controller,
// to the updaters that were attached.
func (c *Controller) PushesTo(service *registry.Service) xdsupdate.XDSUpdater {
	switch e := c.notifying.Load(); {
	case e == nil || e.curr != service:
		return nil
	case e.asker != nil:
		return e.asker.pushesTo(service)
	default:
		return e.pushedTo
	}
}

// pushesTo returns the updater that is asked for the push of a change of a registry,
// which is notifying of it. Only then does one that consists of others know.
func (r *registration) pushesTo(s *registry.Service) xdsupdate.XDSUpdater {
	if r.pusher == nil {
		return nil
	}
	return r.pusher.PushesTo(s)
}

// cameWith notes the services that a registry came with. They were pushed by the
// registry, if at all, before readers of the Controller could see them.
func (c *Controller) cameWith(reg *registration, services *registry.ServiceSet) {
	c.mu.Lock()
	defer c.mu.Unlock()
	reg.initial = services
}

// isInitialLocked reports whether an event is that of a service that the registry came
// with. None is any more when the registry has changed or removed a service: one that
// comes back as the very same object is a change like any other.
func (r *registration) isInitialLocked(curr *registry.Service, e registry.Event) bool {
	if e != registry.EventAdd {
		r.initial = nil
	}
	return slices.Contains(r.initial.Host(curr.Hostname), curr)
}
