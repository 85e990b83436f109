// SPDX-License-Identifier: Apache-2.0

package serviceentry

import (
	"net/netip"
)

// addressIndex finds the members that have an address. Several may have the
// same; each is in it once for each of its addresses.
type addressIndex struct {
	byIP   map[netip.Addr][]*member
	byName map[string][]*member
}

func newAddressIndex() addressIndex {
	return addressIndex{byIP: map[netip.Addr][]*member{}, byName: map[string][]*member{}}
}

func (x *addressIndex) find(address string) []*member {
	if ip, err := netip.ParseAddr(address); err == nil {
		return x.byIP[ip.Unmap()]
	}
	return x.byName[address]
}

func (x *addressIndex) add(m *member) {
	for _, a := range m.addresses() {
		if ip, err := netip.ParseAddr(a); err == nil {
			addTo(x.byIP, ip.Unmap(), m)
		} else {
			addTo(x.byName, a, m)
		}
	}
}

func (x *addressIndex) remove(m *member) {
	for _, a := range m.addresses() {
		if ip, err := netip.ParseAddr(a); err == nil {
			removeFrom(x.byIP, ip.Unmap(), m)
		} else {
			removeFrom(x.byName, a, m)
		}
	}
}

func addTo[K comparable](index map[K][]*member, k K, m *member) { index[k] = append(index[k], m) }

func removeFrom[K comparable](index map[K][]*member, k K, m *member) {
	list := index[k]
	for i, n := range list {
		if m != n {
			continue
		}
		if len(list) == 1 {
			delete(index, k)
			return
		}
		copy(list[i:], list[i+1:])
		list[len(list)-1] = nil
		index[k] = list[:len(list)-1]
		return
	}
}

// addresses returns those of the member, none if it has no endpoints.
func (m *member) addresses() []string {
	if len(m.endpoints) == 0 {
		return nil
	}
	return m.endpoints[0].Addresses
}

// addressText returns the form in which an address is found in the index.
func addressText(address string) string {
	if ip, err := netip.ParseAddr(address); err == nil {
		return ip.Unmap().String()
	}
	return address
}
