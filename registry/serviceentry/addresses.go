// SPDX-License-Identifier: Apache-2.0

package serviceentry

import (
	"slices"

	"github.com/pilotkit/pilotkit/internal/ptrtable"
)

// addressTable finds the first contribution at an address in canonical form, and the position of
// the address in that contribution. It may have a million entries. If an entry moves while a reader
// looks it up, the reader finds the former value in a step that is linked before the move (see
// state).
type addressTable = ptrtable.Table[string, contribution]

func newAddressTable() *addressTable {
	return ptrtable.New((*contribution).isAt, (*contribution).addressAt)
}

// isAt reports whether a contribution has an address, in its usual form, at a position.
func (m *contribution) isAt(i uint16, address string) bool {
	addresses := m.addresses()
	return int(i) < len(addresses) && isText(addresses[i], address)
}

// addressAt returns the address at a position of a contribution's, in its usual form.
func (m *contribution) addressAt(i uint16) string { return addressText(m.addresses()[i]) }

// positionOf returns the position of an address that a contribution has.
func (m *contribution) positionOf(address string) uint16 {
	return uint16(slices.IndexFunc(m.addresses(), func(a string) bool { return isText(a, address) })) //nolint:gosec // few
}

// isText reports whether the usual form of an address is a given one.
func isText(a, address string) bool { return a == address || addressText(a) == address }
