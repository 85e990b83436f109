// SPDX-License-Identifier: Apache-2.0

// Package ipaddr gives IP addresses one spelling: text that differs may be one
// address, and what is keyed by text would take it for two.
package ipaddr

import "net/netip"

// Canonical returns an IP address as RFC 5952 writes it, and one of IPv4 in the form
// of IPv6 ("::ffff:192.0.2.1") as IPv4. Other text is returned as it is: host names,
// the paths of unix sockets, and what is empty.
func Canonical(s string) string {
	addr, err := netip.ParseAddr(s)
	if err != nil {
		return s
	}
	return addr.Unmap().String()
}
