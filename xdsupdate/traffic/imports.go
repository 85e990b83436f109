// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"fmt"
	"slices"

	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/mesh"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/objects"
)

// leftOutOf returns the errors for services that a listener of a Sidecar lacks.
func (st *state) leftOutOf(s *mesh.Scope, e *mesh.Egress) []error {
	if e.Dropped == "" {
		return nil
	}
	reason := fmt.Errorf("%s, and services that are newer, are not imported: with the listeners before they would be more than %d",
		e.Dropped, st.settings.limits.Imports)
	return []error{leftOut(s.Sidecar.Config, objects.Element("spec.egress", slices.Index(s.Egress, e)), reason)}
}

// imports adds all resources of proxies whose Sidecars may exceed the limit of imports before or
// after the push, because a changed service may displace others.
func (c *affected) imports() {
	if len(c.services) == 0 {
		return
	}
	for key, b := range c.before.scopeBases() {
		if b.Listeners > 1 && exceeds(b.Imports+b.Listeners*len(c.services), c.after.settings.limits.Imports) {
			c.affect(key.namespace, "", func(p *proxy) bool { return p.Role != objects.Router })
		}
	}
}
