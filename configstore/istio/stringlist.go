// SPDX-License-Identifier: Apache-2.0

package istio

// stringList is a field that holds a list of strings.
type stringList struct {
	name   string
	values []string
}

// checkNoEmpties is checkNoEmpty for many lists; it returns how many have
// elements.
func checkNoEmpties(at *field, lists []stringList) (used int) {
	for _, list := range lists {
		checkNoEmpty(at, list.name, list.values)
		if len(list.values) > 0 {
			used++
		}
	}
	return used
}
