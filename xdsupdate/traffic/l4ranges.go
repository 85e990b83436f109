// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/objects"
)

// l4Ranges are the address ranges of a match of a TCP or TLS route. An empty list stands for all
// addresses.
type l4Ranges struct {
	destinations, sources []netip.Prefix
}

// newL4Ranges parses the subnets of a match. An empty source stands for all addresses.
func newL4Ranges(destinations []string, source string) (l4Ranges, error) {
	var out l4Ranges
	for i, text := range destinations {
		prefixes, err := parseSubnet(text)
		if err != nil {
			return l4Ranges{}, fmt.Errorf("%s: %w", objects.Element("destinationSubnets", i), err)
		}
		out.destinations = append(out.destinations, prefixes...)
	}
	if source != "" {
		prefixes, err := parseSubnet(source)
		if err != nil {
			return l4Ranges{}, fmt.Errorf("sourceSubnet: %w", err)
		}
		out.sources = prefixes
	}
	return out, nil
}

func (r l4Ranges) empty() bool { return len(r.destinations)+len(r.sources) == 0 }

// parseSubnet parses an IP address or a CIDR block. A block of length 0 is returned as two halves,
// because Envoy treats such a block as no condition, which would also cover the other IP family.
func parseSubnet(text string) ([]netip.Prefix, error) {
	if !strings.Contains(text, "/") {
		addr, err := netip.ParseAddr(text)
		if err != nil || addr.Zone() != "" {
			return nil, fmt.Errorf("%q is no IP address", text)
		}
		addr = addr.Unmap()
		return []netip.Prefix{netip.PrefixFrom(addr, addr.BitLen())}, nil
	}
	p, err := netip.ParsePrefix(text)
	if err != nil {
		return nil, fmt.Errorf("%q is no CIDR block", text)
	}
	if mapped := p.Addr().Is4In6() && p.Bits() >= 96; mapped {
		p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
	}
	p = p.Masked()
	if p.Bits() > 0 {
		return []netip.Prefix{p}, nil
	}
	upper := netip.AddrFrom4([4]byte{0x80})
	if p.Addr().Is6() {
		upper = netip.AddrFrom16([16]byte{0x80})
	}
	return []netip.Prefix{netip.PrefixFrom(p.Addr(), 1), netip.PrefixFrom(upper, 1)}, nil
}

// anywhere is the range of all addresses of both IP families.
var anywhere netip.Prefix //nolint:gochecknoglobals // It is the zero value, named.

// orAnywhere returns the ranges, or the range of all addresses if there are none.
func orAnywhere(ranges []netip.Prefix) []netip.Prefix {
	if len(ranges) == 0 {
		return []netip.Prefix{anywhere}
	}
	return ranges
}

type rangeSet map[netip.Prefix]struct{}

func newRangeSet(ranges []netip.Prefix) rangeSet {
	out := make(rangeSet, len(ranges))
	for _, r := range ranges {
		out[r] = struct{}{}
	}
	return out
}

// covers reports whether a single range of the set contains a range.
func (s rangeSet) covers(r netip.Prefix) bool {
	if _, ok := s[anywhere]; ok || len(s) == 0 || !r.IsValid() {
		return ok
	}
	for bits := r.Bits(); bits > 0; bits-- {
		if _, ok := s[netip.PrefixFrom(r.Addr(), bits).Masked()]; ok {
			return true
		}
	}
	return false
}
