// SPDX-License-Identifier: Apache-2.0

package serviceentry

import "strings"

// localityFromLabel returns the locality that a label names. Labels must not
// contain slashes, hence dots separate the parts.
func localityFromLabel(value string) string {
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
