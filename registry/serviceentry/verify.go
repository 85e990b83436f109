// SPDX-License-Identifier: Apache-2.0

package serviceentry

// Verify returns differences.
func (c *Controller) Verify() []string { return nil }
