// SPDX-License-Identifier: Apache-2.0

package xdsbuild

import routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

// JoinRoutes concatenates the routes of several VirtualServices for one host. Catch-all routes are
// moved to the end.
func JoinRoutes(lists ...[]*routev3.Route) []*routev3.Route {
	var out, last []*routev3.Route
	for _, routes := range lists {
		for _, r := range routes {
			if matchesAll(r.GetMatch()) || ofPortWritten(r.GetMatch()) {
				last = append(last, r)
			} else {
				out = append(out, r)
			}
		}
	}
	return append(out, last...)
}
