// SPDX-License-Identifier: Apache-2.0

package xdsupdate

import (
	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/internal/pmap"
	"github.com/pilotkit/pilotkit/registry"
)

// Root is the input of a push: for each source, the state after one of its updates. It is immutable.
// A reference to a root keeps the state of that moment in memory. A nil root is empty.
type Root struct {
	endpoints EndpointSnapshot
	sources   pmap.Map[*Source, sourceValue]
	configs   pmap.Map[configKey, *configstore.Config]
}

// Endpoints returns the endpoints of all services.
func (r *Root) Endpoints() *EndpointSnapshot {
	if r == nil {
		return nil
	}
	return &r.endpoints
}

// Services returns the services of a source, or false if the source has set none (Update.SetServices).
func (r *Root) Services(source *Source) (*registry.ServiceSet, bool) {
	set, ok := r.Members(source).(*registry.ServiceSet)
	return set, ok
}

// Members returns the members of a source, or nil if the source has set none (Update.SetMembers).
func (r *Root) Members(source *Source) any {
	if r == nil {
		return nil
	}
	s, _ := r.sources.Get(source)
	return s.value
}

// Source identifies a registry that sets services, or an aggregate that sets members.
type Source struct{ _ byte }

// sourceValue is the value of a source.
type sourceValue struct {
	value any
	by    *stack
}

// RootReader is a discovery that finds its services in a root: a registry of this module, or an aggregate.
type RootReader interface {
	// ServicesAt returns the services of a root. exact is false if services of a registry are not in the
	// root and were read from the registry instead. The argument discovery is the caller's discovery: if
	// it wraps the reader, it may show other services, and ServicesAt returns nil and false.
	ServicesAt(discovery registry.ServiceSnapshotter, root *Root) (services *registry.ServiceSet, exact bool)
}

// setSource replaces the value of a source. A new source also removes the sources of closed writers.
func setSource(all *pmap.Live[*Source, sourceValue], c *call, by *stack) {
	if c.value == nil {
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
	all.Set(c.source, sourceValue{c.value, by})
}
