// SPDX-License-Identifier: Apache-2.0

package mesh

import (
	"slices"

	"github.com/pilotkit/pilotkit/internal/limit"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/objects"
)

// ScopeBase is a scope of an earlier state, with the changes since. A new scope is derived from it
// on demand, at the cost of the relevant changes.
type ScopeBase struct {
	// Scope is nil if it was dropped.
	Scope *Scope
	// Listeners is the number of the Sidecar's listeners, and imports is an upper bound for the
	// number of services that they import now. Both are kept when the scope is dropped, because
	// clients may still have its resources.
	Listeners, Imports int
	// hosts are the hosts, in lower case, with changed services.
	hosts []registry.Hostname
	// virtualServices are the old and new revisions of changed VirtualServices.
	virtualServices []*objects.VirtualService
	// age counts the states that did not need the scope.
	age int
}

// A scope is dropped after so many changes that building a new one is as cheap, or after so many
// states that did not need it.
const (
	maxBaseChanges limit.Size = 256
	maxBaseAge     limit.Size = 64
)

// NewScopeBase returns the base of a scope without changes.
func NewScopeBase(s *Scope) *ScopeBase {
	return &ScopeBase{Scope: s, Listeners: len(s.Egress), Imports: s.imports}
}

// Since returns the base after more changes of services and VirtualServices, or nil.
func (b ScopeBase) Since(hosts []registry.Hostname, changed []*objects.VirtualService) *ScopeBase {
	b.Imports += b.Listeners * len(hosts)
	if len(hosts) > 0 {
		b.hosts = slices.Concat(b.hosts, hosts)
	}
	if len(changed) > 0 {
		b.virtualServices = slices.Concat(b.virtualServices, changed)
	}
	if b.age++; b.Scope != nil && b.age <= maxBaseAge.Get() && len(b.hosts)+len(b.virtualServices) <= maxBaseChanges.Get() {
		return &b
	}
	if b.Listeners <= 1 { // a single listener has no limit of imports
		return nil
	}
	return &ScopeBase{Listeners: b.Listeners, Imports: b.Imports}
}

// In returns the scope in a new state. The limit is Limits.Imports.
func (b *ScopeBase) In(x *objects.Index, w *World, limit int) *Scope {
	s := b.Scope
	if s.Sidecar == nil {
		return s.withServices(x, w, b.hosts)
	}
	if b.affectedBy(w) {
		return NewScope(x, w, s.Sidecar, s.namespace, limit)
	}
	return s.withServices(x, w, nil)
}

// affectedBy reports whether the changes affect the imports of a Sidecar.
func (b *ScopeBase) affectedBy(w *World) bool {
	s := b.Scope
	for _, host := range b.hosts {
		_, imported := s.imported[host]
		if imported || s.Service(host) != nil {
			return true
		}
		for _, e := range s.Egress {
			if e.Choose(w.Named(host)) != nil {
				return true
			}
		}
	}
	for _, v := range b.virtualServices {
		if v.Delegate() { // changes of delegates are rare, so their roots are not determined
			return true
		}
		for _, e := range s.Egress {
			if v.Visibility.In(s.namespace) && e.Imports(v) {
				return true
			}
		}
	}
	return false
}

// withServices returns the scope with the VirtualServices of an index and updated services of some
// hosts.
func (s *Scope) withServices(x *objects.Index, w *World, hosts []registry.Hostname) *Scope {
	out := *s
	out.index = x
	out.Egress = make([]*Egress, len(s.Egress))
	for i, e := range s.Egress {
		next := *e
		next.bind(x)
		for _, host := range hosts {
			next.renew(w, host)
		}
		out.Egress[i] = &next
	}
	if s.Sidecar == nil {
		out.services, out.Sorted = out.Egress[0].byHost, out.Egress[0].Services
	}
	return &out
}

// renew updates the service of a host in a new egress.
func (e *Egress) renew(w *World, host registry.Hostname) {
	before, after := e.Service(host), e.Choose(w.Named(host))
	if before == nil && after == nil {
		return
	}
	e.Services = objects.Replaced(e.Services, before, after, compareServices)
	if after == nil {
		e.byHost = e.byHost.Delete(host)
	} else {
		e.byHost = e.byHost.Set(host, after)
	}
}
