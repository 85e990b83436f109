// SPDX-License-Identifier: Apache-2.0

package serviceentry

import (
	"bytes"
	"fmt"
	"hash/fnv"
	"log/slog"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/pilotkit/pilotkit/registry"
)

func unaddressed(hostname string, age int) *registry.Service {
	return &registry.Service{
		Hostname: registry.Hostname(hostname), DefaultAddress: registry.UnspecifiedAddress,
		CreationTime: time.Unix(1000-int64(age), 0),
		Attributes:   registry.ServiceAttributes{Namespace: "ns", Name: hostname, ObjectName: "o"},
	}
}

func sumOf(hostname string) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte("ns/" + hostname))
	return h.Sum32()
}

// addressOf is the address of the only service in or near a slot: the slots are
// numbered from 1.
func addressOf(slot uint32) string {
	return fmt.Sprintf("240.240.%d.%d", (slot+1)/255, (slot+1)%255)
}

// TestAllocationOfCollidingServices: of services with one hash the oldest gets its
// slot, the next one that of Istio's second hash.
func TestAllocationOfCollidingServices(t *testing.T) {
	t.Parallel()
	seen := map[uint32]string{}
	for i := 0; ; i++ {
		young := fmt.Sprintf("s%d.com", i)
		sum := sumOf(young)
		old, collides := seen[sum%65024]
		if seen[sum%65024] = young; !collides {
			continue
		}
		next := (sum + 65011 - sum%65011) % 65023
		if (sum%65024+1)%255 == 0 || (next+1)%255 == 0 {
			continue // their addresses would be moved
		}
		for _, list := range [][]*registry.Service{
			{unaddressed(old, 1), unaddressed(young, 0)}, {unaddressed(young, 0), unaddressed(old, 1)},
		} {
			for s, with := range allocateByHash(list, slog.New(slog.DiscardHandler)) {
				want := addressOf(next)
				if s.Attributes.Name == old {
					want = addressOf(sum % 65024)
				}
				if with.AutoAllocatedIPv4 != want {
					t.Errorf("%s has %s, want %s", s.Hostname, with.AutoAllocatedIPv4, want)
				}
			}
		}
		return
	}
}

// TestAllocationOfManyServices: as many as there are addresses get one each, none that
// ends with 0, and what is too much gets none.
func TestAllocationOfManyServices(t *testing.T) {
	t.Parallel()
	const slots = 65024
	var log bytes.Buffer
	services := []*registry.Service{unaddressed("*.wild.com", 2)}
	for i := range slots + 10 {
		services = append(services, unaddressed(fmt.Sprintf("s%d.com", i), min(1, max(0, 10-i))))
	}
	got := allocateByHash(services, slog.New(slog.NewTextHandler(&log, nil)))
	if len(got) != slots {
		t.Errorf("%d services have addresses, want %d", len(got), slots)
	}
	if !strings.Contains(log.String(), "services=65034") {
		t.Errorf("the log is %q", log.String())
	}
	seen := map[string]registry.Hostname{}
	inside := netip.MustParsePrefix("240.240.0.0/16")
	for _, s := range got {
		v4, v6 := netip.MustParseAddr(s.AutoAllocatedIPv4), netip.MustParseAddr(s.AutoAllocatedIPv6)
		if b := v4.As4(); b[3] == 0 || !inside.Contains(v4) || !v6.Is6() {
			t.Errorf("%s has %s and %s", s.Hostname, v4, v6)
		}
		for _, a := range []string{s.AutoAllocatedIPv4, s.AutoAllocatedIPv6} {
			if other, taken := seen[a]; taken {
				t.Fatalf("%s and %s both have %s", other, s.Hostname, a)
			}
			seen[a] = s.Hostname
		}
	}
	for _, s := range services[:11] {
		if _, ok := got[s]; ok == s.Hostname.IsWildcard() {
			t.Errorf("%s, one of the oldest, has an address: %t", s.Hostname, ok)
		}
	}
}
