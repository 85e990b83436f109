// SPDX-License-Identifier: Apache-2.0

package traffic

// t72: a redirect to the port that its scheme implies has a route before it, for requests
// whose host has a port.
func (c *comparison) t72() {
	for _, config := range c.got[routes] {
		for _, vh := range objects(config, "virtualHosts") {
			keepObjects(vh, "routes", func(r tree) bool {
				headers := objects(object(r, "match"), "headers")
				return object(r, "redirect") == nil || len(headers) == 0 ||
					text(object(headers[len(headers)-1], "stringMatch"), "contains") != ":"
			})
		}
	}
}
