// SPDX-License-Identifier: Apache-2.0

package kube

import "context"

// Follow does the reading half of Run until ctx ends, so that what happens before
// Run can be tested.
func (c *Cache) Follow(ctx context.Context) {
	c.followed.Store(true)
	c.follow(ctx)
}

// Listed reports whether the initial state has been read.
func (c *Cache) Listed() bool { return c.listed() }
