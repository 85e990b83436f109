// SPDX-License-Identifier: Apache-2.0

package serviceentry

import (
	"strings"

	"github.com/pilotkit/pilotkit/registry"
)

// localityOf returns the locality of a workload: the field as it is written, else
// the label. In a label, which must not contain slashes, dots separate the parts.
func localityOf(field string, labels registry.Labels) string {
	if field != "" {
		return field
	}
	value := labels[labelLocality]
	if value == "" {
		value = labels[labelLegacyLocality]
	}
	if strings.Contains(value, "/") {
		return value
	}
	return strings.ReplaceAll(value, ".", "/")
}

// splitLocality divides "region/zone/subzone"; what is missing is empty, what is
// too much is dropped.
func splitLocality(locality string) (region, zone, subzone string) {
	region, rest, _ := strings.Cut(locality, "/")
	zone, rest, _ = strings.Cut(rest, "/")
	subzone, _, _ = strings.Cut(rest, "/")
	return region, zone, subzone
}
