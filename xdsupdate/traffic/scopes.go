// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"maps"
	"slices"

	"github.com/pilotkit/pilotkit/internal/limit"
	"github.com/pilotkit/pilotkit/registry"
)

// scopeBase is a scope of an earlier state, with the changes since. A new scope is derived from it
// on demand, at the cost of the relevant changes.
type scopeBase struct {
	// scope is nil if it was dropped.
	scope *scope
	// listeners is the number of the Sidecar's listeners, and imports is an upper bound for the
	// number of services that they import now. Both are kept when the scope is dropped, because
	// clients may still have its resources.
	listeners, imports int
	// hosts are the hosts, in lower case, with changed services.
	hosts []registry.Hostname
	// virtualServices are the old and new revisions of changed VirtualServices.
	virtualServices []*virtualService
	// age counts the states that did not need the scope.
	age int
}

// A scope is dropped after so many changes that building a new one is as cheap, or after so many
// states that did not need it.
const (
	maxBaseChanges limit.Size = 256
	maxBaseAge     limit.Size = 64
)

func newScopeBase(s *scope) *scopeBase {
	return &scopeBase{scope: s, listeners: len(s.egress), imports: s.imports}
}

// since returns the base after more changes, or nil.
func (b scopeBase) since(d *difference) *scopeBase {
	b.imports += b.listeners * len(d.services)
	if len(d.services) > 0 {
		b.hosts = slices.Concat(b.hosts, d.services)
	}
	if changed := d.virtualServices(); len(changed) > 0 {
		b.virtualServices = slices.Concat(b.virtualServices, changed)
	}
	if b.age++; b.scope != nil && b.age <= maxBaseAge.Get() && len(b.hosts)+len(b.virtualServices) <= maxBaseChanges.Get() {
		return &b
	}
	if b.listeners <= 1 { // a single listener has no limit of imports
		return nil
	}
	return &scopeBase{listeners: b.listeners, imports: b.imports}
}

// scopeBases returns the bases of a state's scopes, including those inherited from earlier states.
func (st *state) scopeBases() map[scopeKey]*scopeBase {
	out := maps.Clone(st.bases)
	if out == nil {
		out = make(map[scopeKey]*scopeBase)
	}
	for key, s := range st.scopes.all() {
		out[key] = newScopeBase(s)
	}
	return out
}

// basesAfter returns the bases after a difference.
func (st *state) basesAfter(d *difference) map[scopeKey]*scopeBase {
	out := st.scopeBases()
	gone := make(map[*sidecar]struct{})
	for _, o := range d.objects {
		if s, is := o.before.(*sidecar); is {
			gone[s] = struct{}{}
		}
	}
	for key, base := range out {
		next := base.since(d)
		if _, is := gone[key.sidecar]; is || next == nil {
			delete(out, key)
		} else {
			out[key] = next
		}
	}
	return out
}

// in returns the scope in a new state.
func (b *scopeBase) in(x *index, w world) *scope {
	s := b.scope
	if s.sidecar == nil {
		return s.withServices(x, w, b.hosts)
	}
	if b.affectedBy(w) {
		return newScope(x, w, s.sidecar, s.namespace)
	}
	return s.withServices(x, w, nil)
}

// affectedBy reports whether the changes affect the imports of a Sidecar.
func (b *scopeBase) affectedBy(w world) bool {
	s := b.scope
	for _, host := range b.hosts {
		_, imported := s.imported[host]
		if imported || s.service(host) != nil {
			return true
		}
		for _, e := range s.egress {
			if e.choose(w.named(host)) != nil {
				return true
			}
		}
	}
	for _, v := range b.virtualServices {
		if v.delegate() { // changes of delegates are rare, so their roots are not determined
			return true
		}
		for _, e := range s.egress {
			if v.visibility.in(s.namespace) && e.imports(v) {
				return true
			}
		}
	}
	return false
}

// withServices returns the scope with the VirtualServices of an index and updated services of some
// hosts.
func (s *scope) withServices(x *index, w world, hosts []registry.Hostname) *scope {
	out := *s
	out.index = x
	out.egress = make([]*egress, len(s.egress))
	for i, e := range s.egress {
		next := *e
		next.bind(x)
		for _, host := range hosts {
			next.renew(w, host)
		}
		out.egress[i] = &next
	}
	if s.sidecar == nil {
		out.services, out.sorted = out.egress[0].byHost, out.egress[0].services
	}
	return &out
}

// renew updates the service of a host in a new egress.
func (e *egress) renew(w world, host registry.Hostname) {
	before, after := e.service(host), e.choose(w.named(host))
	if before == nil && after == nil {
		return
	}
	e.services = replaced(e.services, before, after, compareServices)
	if after == nil {
		e.byHost = e.byHost.Delete(host)
	} else {
		e.byHost = e.byHost.Set(host, after)
	}
}
