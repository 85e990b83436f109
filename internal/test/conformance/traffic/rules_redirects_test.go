// SPDX-License-Identifier: Apache-2.0

package traffic

import "slices"

// t72: a redirect to the port that its scheme implies has a route before it, for requests
// whose host has a port.
func (c *comparison) t72() {
	for _, config := range c.got[routes] {
		for _, vh := range objects(config, "virtualHosts") {
			keepObjects(vh, "routes", func(r tree) bool {
				return object(r, "redirect") == nil || !slices.ContainsFunc(objects(object(r, "match"), "headers"), func(h tree) bool {
					return text(object(h, "stringMatch"), "contains") == ":"
				})
			})
		}
	}
}
