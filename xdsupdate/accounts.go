// SPDX-License-Identifier: Apache-2.0

package xdsupdate

import (
	"maps"
	"slices"
)

// accountCounts counts how many endpoints of a service have each service
// account. The first account has no map: most services have one account only.
type accountCounts struct {
	first     string
	firstUses int
	// more holds positive counts; nil if it would be empty.
	more map[string]int
}

// add changes the count of an account by a number of uses, which may be negative.
// It reports whether the account came or went. No account is not counted.
func (c *accountCounts) add(account string, uses int) bool {
	if account == "" {
		return false
	}
	if account == c.first && c.firstUses > 0 {
		c.firstUses += uses
		return c.firstUses == 0
	}
	before := c.more[account]
	if before == 0 && c.firstUses == 0 {
		c.first, c.firstUses = account, uses
		return true
	}
	switch after := before + uses; {
	case after > 0:
		if c.more == nil {
			c.more = make(map[string]int)
		}
		c.more[account] = after
	case len(c.more) == 1:
		c.more = nil
	default:
		delete(c.more, account)
	}
	return before == 0 || before+uses == 0
}

// is reports whether the accounts are those of a sorted list.
func (c *accountCounts) is(sorted []string) bool {
	n := len(c.more)
	if c.firstUses > 0 {
		n++
	}
	if n != len(sorted) {
		return false
	}
	for _, account := range sorted {
		if _, ok := c.more[account]; !ok && (c.firstUses == 0 || account != c.first) {
			return false
		}
	}
	return true
}

// sorted returns the accounts; nil if there are none.
func (c *accountCounts) sorted() []string {
	var out []string
	if c.firstUses > 0 {
		out = []string{c.first}
	}
	if len(c.more) > 0 {
		out = append(slices.Grow(out, len(c.more)), slices.Collect(maps.Keys(c.more))...)
		slices.Sort(out)
	}
	return out
}
