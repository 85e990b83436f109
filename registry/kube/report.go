// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/internal/publish"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// ReportTo makes the registry report to another updater. It first reports the complete content of
// the registry in one batch, as SvcUpdate and EDSUpdate, and then all changes. It requests no push.
// A nil updater is xdsupdate.Discard. ReportTo returns after the first batch, or with an error as
// Flush does. Handlers and the updater must not call it.
//
// With ReportTo, a registry can be filled with xdsupdate.Discard as its updater before it replaces
// another registry, which continues to report until then.
func (c *Controller) ReportTo(ctx context.Context, updater xdsupdate.XDSUpdater) error {
	c.publisher.Enqueue(event{inspect: func(*engine) {
		c.publisher.SetUpdater(updater)
		shown := c.publisher.State()
		c.publisher.Publish(shown, shown.everything())
	}})
	return c.Flush(ctx)
}

// everything returns a state as a change from the empty state, for the updater.
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
