// SPDX-License-Identifier: Apache-2.0

package serviceentry

import (
	"net/netip"
	"slices"
	"strings"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/registry"
)

// serviceAddresses returns the distinct addresses of the services of an entry, in order:
// UnspecifiedAddress if the entry has no address, and nothing if no address is valid. Istio 1.30
// does the same; validation rejects invalid addresses.
func serviceAddresses(given []string) []string {
	if len(given) == 0 {
		return []string{registry.UnspecifiedAddress}
	}
	out := make([]string, 0, len(given))
	for _, a := range given {
		if a, ok := serviceAddress(a); ok && !slices.Contains(out, a) {
			out = append(out, a)
		}
	}
	return out
}

// serviceAddress returns an IP address or a CIDR range as it is written; a range
// of one address becomes that address.
func serviceAddress(a string) (string, bool) {
	if !strings.Contains(a, "/") {
		return a, isIP(a)
	}
	prefix, err := netip.ParsePrefix(a)
	if err != nil {
		return "", false
	}
	if prefix.IsSingleIP() {
		return prefix.Addr().String(), true
	}
	return a, true
}

// allocated returns the addresses in the status of an entry for one of its
// hosts, in the usual spelling. Of several of one family the last counts, as in
// Istio 1.30.
func (c *conversion) allocated(config *configstore.Config, spec *networking.ServiceEntry, host string) (v4, v6 string) {
	if c.options.AddressAllocation != AllocateFromStatus || !mayAllocate(config, spec) {
		return "", ""
	}
	status, _ := config.Status.(*networking.ServiceEntryStatus)
	for _, a := range status.GetAddresses() {
		if a.GetHost() != host {
			continue
		}
		switch ip, err := netip.ParseAddr(a.GetValue()); {
		case err != nil:
		case ip.Is4():
			v4 = ip.String()
		default:
			v6 = ip.String()
		}
	}
	return v4, v6
}

func mayAllocate(config *configstore.Config, spec *networking.ServiceEntry) bool {
	return len(spec.GetAddresses()) == 0 && spec.GetResolution() != networking.ServiceEntry_NONE &&
		!strings.EqualFold(config.Labels[labelAutoAllocate], "false")
}

// addressText returns the one form of an IP address, or another address as it is.
func addressText(address string) string {
	ip, err := netip.ParseAddr(address)
	if err != nil {
		return address
	}
	var room [48]byte
	if text := ip.Unmap().AppendTo(room[:0]); string(text) != address {
		return string(text)
	}
	return address
}
