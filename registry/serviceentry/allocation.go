// SPDX-License-Identifier: Apache-2.0

package serviceentry

import (
	"cmp"
	"hash/fnv"
	"log/slog"
	"net/netip"
	"slices"
	"strings"

	"github.com/pilotkit/pilotkit/registry"
)

const (
	// slots is the number of addresses, 256 times 254. slotPrime is a smaller prime number for the
	// second hash. Both values come from Istio 1.30.
	slots     = 256 * 254
	slotPrime = 65011
)

// allocateByHash returns copies with addresses for the services that need one, by the original.
// Each pair of namespace and host name has its own IPv4 and IPv6 address. The IPv4 addresses are
// identical to Istio 1.30. They depend on all services, because older services choose first.
func allocateByHash(services []*registry.Service, logger *slog.Logger) map[*registry.Service]*registry.Service {
	eligible := slices.DeleteFunc(slices.Clone(services), func(s *registry.Service) bool {
		return s.DefaultAddress != registry.UnspecifiedAddress || s.Hostname.IsWildcard() || s.Resolution == registry.Passthrough
	})
	slices.SortStableFunc(eligible, compareAge)
	if len(eligible) > slots {
		logger.Error("too many services to allocate addresses", slog.Int("services", len(eligible)), slog.Int("addresses", slots))
		eligible = eligible[:slots]
	}
	table := fillSlots(eligible)
	numbers := map[string]int{}
	out := make(map[*registry.Service]*registry.Service, len(eligible))
	number := 0
	for _, s := range table {
		number++
		if s == nil {
			continue
		}
		// The last part of an IPv4 address is never 0.
		if number%255 == 0 {
			number++
		}
		n, ok := numbers[s.Key()]
		if !ok {
			n = number
			numbers[s.Key()] = n
		}
		t := *s
		t.AutoAllocatedIPv4, t.AutoAllocatedIPv6 = slotAddresses(n)
		out[s] = &t
	}
	return out
}

// compareAge is the order in which services choose an automatic address, as in Istio 1.30: by age,
// host name, namespace and entry.
func compareAge(s, t *registry.Service) int {
	return cmp.Or(
		s.CreationTime.Compare(t.CreationTime),
		strings.Compare(s.Attributes.Name, t.Attributes.Name),
		strings.Compare(s.Attributes.Namespace, t.Attributes.Namespace),
		strings.Compare(s.Attributes.ObjectName, t.Attributes.ObjectName),
	)
}

// fillSlots gives each service a slot: that of the hash of its key or, if that is
// taken, the next one that double hashing finds.
func fillSlots(services []*registry.Service) []*registry.Service {
	table := make([]*registry.Service, slots)
	for _, s := range services {
		h := fnv.New32a()
		_, _ = h.Write([]byte(s.Key()))
		sum := h.Sum32()
		slot := sum % slots
		step := slotPrime - sum%slotPrime
		// Probing leaves out the last slot and need not reach all others.
		for i := uint32(1); table[slot] != nil && i < slots; i++ {
			slot = (sum + i*step) % (slots - 1)
		}
		for table[slot] != nil {
			slot = (slot + 1) % slots
		}
		table[slot] = s
	}
	return table
}

// slotAddresses returns the addresses of a number below 65536.
func slotAddresses(n int) (v4, v6 string) {
	hi, lo := byte(n/255), byte(n%255)
	// Istio 1.30 writes the last group without padding: 0.17 and 1.1 both become
	// 11, so that different services get the same IPv6 address.
	last := [16]byte{0x20, 0x01, 0, 2, 12: 0xf0, 13: 0xf0, 14: hi, 15: lo}
	return netip.AddrFrom4([4]byte{240, 240, hi, lo}).String(), netip.AddrFrom16(last).String()
}
