// SPDX-License-Identifier: Apache-2.0

package xdsupdate

import (
	"slices"
	"strings"
)

// accountCounts counts how many endpoints of a service have each service account. The accounts are
// sorted, and most services have one only. The counts are positive.
type accountCounts []accountCount

type accountCount struct {
	account string
	uses    int
}

// add changes the count of an account by a number of uses, which may be negative.
// It reports whether the account came or went. No account is not counted.
func (c *accountCounts) add(account string, uses int) bool {
	if account == "" {
		return false
	}
	i, found := slices.BinarySearchFunc(*c, account, func(a accountCount, name string) int { return strings.Compare(a.account, name) })
	if !found {
		*c = slices.Insert(*c, i, accountCount{account, uses})
		return true
	}
	at := &(*c)[i]
	if at.uses += uses; at.uses != 0 {
		return false
	}
	*c = slices.Delete(*c, i, i+1)
	return true
}

// is reports whether the accounts equal a sorted list.
func (c accountCounts) is(sorted []string) bool {
	return slices.EqualFunc(c, sorted, func(a accountCount, name string) bool { return a.account == name })
}

// sorted returns the accounts; nil if there are none.
func (c accountCounts) sorted() (out []string) {
	for _, a := range c {
		out = append(out, a.account)
	}
	return out
}
