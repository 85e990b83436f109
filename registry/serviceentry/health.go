// SPDX-License-Identifier: Apache-2.0

package serviceentry

import (
	"strconv"

	meta "istio.io/api/meta/v1alpha1"

	"github.com/pilotkit/pilotkit/configstore"
)

// conditionHealthy is the type of the condition with the result of the health checks of a
// WorkloadEntry, as in Istio 1.30.
const conditionHealthy = "Healthy"

// healthy reports whether a WorkloadEntry may be used: it has no health checks,
// or the last one succeeded. One that was never checked is not healthy.
func healthy(c *configstore.Config) bool {
	annotation := c.Annotations[annotationHealthChecks]
	if annotation == "" {
		return true
	}
	if checked, err := strconv.ParseBool(annotation); err != nil || !checked {
		return true
	}
	status, _ := c.Status.(*meta.IstioStatus)
	for _, condition := range status.GetConditions() {
		if condition.GetType() == conditionHealthy {
			return condition.GetStatus() == "True"
		}
	}
	return false
}
