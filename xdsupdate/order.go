// SPDX-License-Identifier: Apache-2.0

package xdsupdate

import (
	"cmp"
	"strings"

	"github.com/pilotkit/pilotkit/registry"
)

// compareEndpoints is registry.CompareEndpoints, which begins with the fields of
// the key; it stops at the first difference.
func compareEndpoints(e, f *registry.Endpoint) int {
	if c := compareKeys(e, f); c != 0 || e == f {
		return c
	}
	return registry.CompareEndpoints(e, f)
}

// compareKeys orders endpoints by registry.EndpointKey, as CompareEndpoints
// does: endpoints with equal keys are neighbours in every list.
func compareKeys(e, f *registry.Endpoint) int {
	if e == f {
		return 0
	}
	if c := strings.Compare(e.Address(), f.Address()); c != 0 {
		return c
	}
	if c := cmp.Compare(e.ServicePort, f.ServicePort); c != 0 {
		return c
	}
	if c := strings.Compare(e.ServicePortName, f.ServicePortName); c != 0 {
		return c
	}
	if c := cmp.Compare(e.EndpointPort, f.EndpointPort); c != 0 {
		return c
	}
	a, b := e.Attributes(), f.Attributes()
	if c := strings.Compare(a.Namespace, b.Namespace); c != 0 {
		return c
	}
	if c := strings.Compare(e.WorkloadName, f.WorkloadName); c != 0 {
		return c
	}
	return strings.Compare(a.Network, b.Network)
}
