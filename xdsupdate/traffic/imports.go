// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"cmp"
	"fmt"
	"slices"
)

// limitImports enforces Limits.Imports for the listeners of a Sidecar. The first listener that
// exceeds it, and those after it, import only the oldest services within the rest of the limit. The
// first listener of the Sidecar is never limited.
func (s *scope) limitImports(limit int) {
	for i, e := range s.egress {
		before := s.imports
		if s.imports += len(e.services); i > 0 && exceeds(s.imports, limit) {
			e.keepOldest(max(0, limit-before))
		}
	}
}

// keepOldest drops all services of a new listener except the n oldest.
func (e *egress) keepOldest(n int) {
	if n >= len(e.services) {
		return
	}
	byAge := slices.Clone(e.services)
	slices.SortFunc(byAge, func(a, b *service) int {
		return cmp.Or(a.of[0].CreationTime.Compare(b.of[0].CreationTime), compareServices(a, b))
	})
	for _, svc := range byAge[n:] {
		e.byHost = e.byHost.Delete(lower(svc.host))
	}
	e.dropped = byAge[n].host
	e.services = byAge[:n]
	slices.SortFunc(e.services, compareServices)
}

// leftOutOf returns the errors for services that a listener of a Sidecar lacks.
func (st *state) leftOutOf(s *scope, e *egress) []error {
	if e.dropped == "" {
		return nil
	}
	reason := fmt.Errorf("%s, and services that are newer, are not imported: with the listeners before they would be more than %d",
		e.dropped, st.settings.limits.Imports)
	return []error{leftOut(s.sidecar.config, element("spec.egress", slices.Index(s.egress, e)), reason)}
}

// imports adds all resources of proxies whose Sidecars may exceed the limit of imports before or
// after the push, because a changed service may displace others.
func (c *affected) imports() {
	if len(c.services) == 0 {
		return
	}
	for key, b := range c.before.scopeBases() {
		if b.listeners > 1 && exceeds(b.imports+b.listeners*len(c.services), c.after.settings.limits.Imports) {
			c.affect(key.namespace, "", func(p *proxy) bool { return p.role != router })
		}
	}
}
