// SPDX-License-Identifier: Apache-2.0

package xdsupdate

import (
	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/internal/pmap"
	"github.com/pilotkit/pilotkit/registry"
)

// Root is what a push is made of: what the sources have said, of each of them up to one of its
// updates. It is immutable; holding one keeps the state of that moment in memory. Nil is
// an empty one.
type Root struct {
	endpoints EndpointSnapshot
	services  pmap.Map[*Source, sourceServices]
	configs   pmap.Map[configKey, *configstore.Config]
}

// Endpoints returns the endpoints of all services.
func (r *Root) Endpoints() *EndpointSnapshot {
	if r == nil {
		return nil
	}
	return &r.endpoints
}

// Services returns the services of a source; false if it has set none (Update.SetServices).
func (r *Root) Services(source *Source) (*registry.ServiceSet, bool) {
	if r == nil {
		return nil, false
	}
	s, ok := r.services.Get(source)
	return s.set, ok
}

// Source is the identity of who sets services.
type Source struct{ _ byte }

// sourceServices are the services of a source.
type sourceServices struct {
	set *registry.ServiceSet
	by  *stack
}

// RootReader is a discovery of which a root has the services: one of the registries of this
// module, or an aggregate of them.
type RootReader interface {
	// ServicesAt returns the services as a root has them, and whether all of them are the
	// root's: those of registries that set none are read. It is asked with the discovery that
	// the caller has; for one that wraps the reader, and may show other services, it
	// returns nil and false.
	ServicesAt(discovery registry.ServiceSnapshotter, root *Root) (services *registry.ServiceSet, exact bool)
}

// setServices replaces the services of a source. When a new one comes those of closed writers
// are forgotten.
func setServices(all *pmap.Live[*Source, sourceServices], c *call, by *stack) {
	if c.set == nil {
		all.Delete(c.source)
		return
	}
	if _, known := all.Get(c.source); !known {
		for source, s := range all.Snapshot().All() {
			if !s.by.open() {
				all.Delete(source)
			}
		}
	}
	all.Set(c.source, sourceServices{c.set, by})
}
