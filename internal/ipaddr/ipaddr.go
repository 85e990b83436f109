// SPDX-License-Identifier: Apache-2.0

// Package ipaddr gives IP addresses a canonical spelling, because one address can be written in
// several ways, which would be different keys.
package ipaddr

import (
	"net/netip"
	"strings"
)

// Canonical returns an IP address as RFC 5952 writes it, and an IPv4 address in IPv6 form
// ("::ffff:192.0.2.1") as IPv4. Other text, including host names, paths of unix sockets and the
// empty string, is returned unchanged.
func Canonical(s string) string {
	addr, err := netip.ParseAddr(s)
	if err != nil {
		return s
	}
	return addr.Unmap().String()
}

// ParseBlock returns the CIDR block that s spells, without the bits behind the
// prefix, for comparison: that of an address is the block that holds it alone, that
// of IPv4 in the form of IPv6 is one of IPv4. Zones are dropped.
func ParseBlock(s string) (block netip.Prefix, ok bool) {
	if strings.IndexByte(s, '/') < 0 {
		addr, err := netip.ParseAddr(s)
		addr = addr.Unmap().WithZone("")
		return netip.PrefixFrom(addr, addr.BitLen()), err == nil
	}
	block, err := netip.ParsePrefix(s)
	if err != nil {
		return netip.Prefix{}, false
	}
	if addr := block.Addr(); addr.Is4In6() && block.Bits() >= 96 {
		block = netip.PrefixFrom(addr.Unmap(), block.Bits()-96)
	}
	return block.Masked(), true
}
