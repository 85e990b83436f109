// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/resource"
)

// buildLazy builds the lazy resources of some names, before a lock is taken to
// subscribe to them: what builds them is code of the program.
func (c *cache) buildLazy(conn *connection, typeURL string, names []string) {
	var lazy []*resource.State
	var of *view
	c.divided(len(names), func(from, to int) {
		if conn.view == nil || conn.view.overlay[typeURL].Len() == 0 {
			return
		}
		of = conn.view
		for _, name := range names[from:to] {
			if made, ok := conn.view.overlay.get(typeURL, name); ok && made.message == nil {
				lazy = append(lazy, made.resource)
			}
		}
	})
	for _, r := range lazy {
		of.make(r, c.failures)
	}
}
