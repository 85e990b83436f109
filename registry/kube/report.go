// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/internal/publish"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// ReportTo makes the registry report to another updater: first, in one batch,
// everything that the registry shows, as SvcUpdate and EDSUpdate; then what changes. A
// nil updater is xdsupdate.Discard. ReportTo asks for no push. It returns when the first
// has happened, with an error as Flush does; handlers and the updater must not call it.
//
// A registry that New made with xdsupdate.Discard can so be filled before it takes the
// place of another one, which reports until then.
func (c *Controller) ReportTo(ctx context.Context, updater xdsupdate.XDSUpdater) error {
	c.publisher.Enqueue(event{inspect: func(*engine) {
		c.publisher.SetUpdater(updater)
		shown := c.publisher.State()
		c.publisher.Publish(shown, shown.everything())
	}})
	return c.Flush(ctx)
}

// everything returns the change from nothing to what the updater is to know of a state.
func (s *state) everything() *publish.Change {
	c := &publish.Change{}
	for _, service := range s.services.List() {
		v, ok := s.hosts.Get(service.Hostname)
		if !ok || v.object.hidden() {
			continue
		}
		host, namespace := service.Hostname, v.object.namespace
		c.Services = append(c.Services, publish.ServiceUpdate{Hostname: host, Namespace: namespace, Event: registry.EventAdd})
		if v.endpoints.Len() > 0 {
			c.Endpoints = append(c.Endpoints, publish.EndpointUpdate{Hostname: host, Namespace: namespace, Endpoints: v.endpoints})
		}
	}
	return c
}
