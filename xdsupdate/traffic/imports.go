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
