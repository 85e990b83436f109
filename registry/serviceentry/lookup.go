// SPDX-License-Identifier: Apache-2.0

package serviceentry

import "net/netip"

// addressIndex finds the members that have an address. Nearly all addresses are
// the first of one member, so that what is kept for one is small: members with
// the same first address form a list, and IPv4 addresses have a table of their
// own.
type addressIndex struct {
	v4    map[[4]byte]*member
	v6    map[netip.Addr]*member
	names map[string]*member
	// further holds the members that have an address which is not their first.
	further map[string][]*member
}

func newAddressIndex() addressIndex {
	return addressIndex{
		v4: map[[4]byte]*member{}, v6: map[netip.Addr]*member{}, names: map[string]*member{},
		further: map[string][]*member{},
	}
}

// find appends the members that have an address.
func (x *addressIndex) find(address string, to []*member) []*member {
	for m := x.first(address); m != nil; m = m.nextAt {
		to = append(to, m)
	}
	if len(x.further) > 0 {
		to = append(to, x.further[addressText(address)]...)
	}
	return to
}

func (x *addressIndex) first(address string) *member {
	switch ip, err := netip.ParseAddr(address); {
	case err != nil:
		return x.names[address]
	case ip.Unmap().Is4():
		return x.v4[ip.Unmap().As4()]
	default:
		return x.v6[ip]
	}
}

func (x *addressIndex) setFirst(address string, m *member) {
	switch ip, err := netip.ParseAddr(address); {
	case err != nil:
		set1(x.names, address, m)
	case ip.Unmap().Is4():
		set1(x.v4, ip.Unmap().As4(), m)
	default:
		set1(x.v6, ip, m)
	}
}

func set1[K comparable](table map[K]*member, k K, m *member) {
	if m == nil {
		delete(table, k)
	} else {
		table[k] = m
	}
}

func (x *addressIndex) add(m *member) {
	for i, a := range m.addresses() {
		if i == 0 {
			m.nextAt = x.first(a)
			x.setFirst(a, m)
		} else {
			a = addressText(a)
			x.further[a] = append(x.further[a], m)
		}
	}
}

func (x *addressIndex) remove(m *member) {
	for i, a := range m.addresses() {
		if i == 0 {
			x.removeFirst(a, m)
		} else {
			x.removeFurther(addressText(a), m)
		}
	}
}

func (x *addressIndex) removeFirst(a string, m *member) {
	head := x.first(a)
	if head == m {
		x.setFirst(a, m.nextAt)
	}
	for n := head; n != nil; n = n.nextAt {
		if n.nextAt == m {
			n.nextAt = m.nextAt
			break
		}
	}
	m.nextAt = nil
}

func (x *addressIndex) removeFurther(a string, m *member) {
	list := x.further[a]
	for i, n := range list {
		if m == n {
			list[i] = list[len(list)-1]
			list[len(list)-1] = nil
			list = list[:len(list)-1]
			break
		}
	}
	if x.further[a] = list; len(list) == 0 {
		delete(x.further, a)
	}
}

// all yields every address once, as text.
func (x *addressIndex) all(yield func(string) bool) {
	for a := range x.v4 {
		if !yield(netip.AddrFrom4(a).String()) {
			return
		}
	}
	for a := range x.v6 {
		if !yield(a.String()) {
			return
		}
	}
	for a := range x.names {
		if !yield(a) {
			return
		}
	}
	for a := range x.further {
		if x.first(a) == nil && !yield(a) {
			return
		}
	}
}

// addressText returns the one form of an IP address, or another address as it is.
func addressText(address string) string {
	if ip, err := netip.ParseAddr(address); err == nil {
		return ip.Unmap().String()
	}
	return address
}
