// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"slices"

	"github.com/pilotkit/pilotkit/configstore"
)

// The values of exportTo that are no namespaces.
const (
	exportToOwn  = "."
	exportToAll  = "*"
	exportToNone = "~"
)

// checkExportTo checks spec.exportTo: namespaces, "." for the object's own, "*"
// alone for all, and "~" alone for none where that is allowed.
func checkExportTo(spec *field, c configstore.Config, exportTo []string, noneAllowed bool) {
	var seen repetitions[string]
	for i, value := range exportTo {
		at := spec.elem("exportTo", i)
		switch {
		case value == exportToNone && !noneAllowed:
			at.refuse("must not be ~ for a %s", c.GroupVersionKind.Kind)
		case value == exportToOwn, value == exportToAll, value == exportToNone:
		case !isDNSLabel(value):
			at.refuse("must be ., * or a namespace, is %q", value)
		}
		namespace := value
		if value == exportToOwn && c.Namespace != "" {
			namespace = c.Namespace
		}
		if first, ok := seen.add(namespace, i); ok {
			at.refuse("repeats spec.exportTo[%d]: %q", first, value)
		}
	}
	checkAlone(spec.child("exportTo"), exportTo, exportToAll)
	if noneAllowed {
		checkAlone(spec.child("exportTo"), exportTo, exportToNone)
	}
}

func checkAlone(at *field, values []string, alone string) {
	others := func(v string) bool { return v != alone }
	if slices.Contains(values, alone) && slices.ContainsFunc(values, others) {
		at.refuse("must not name others together with %s", alone)
	}
}
