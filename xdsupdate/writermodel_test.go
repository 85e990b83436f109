// SPDX-License-Identifier: Apache-2.0

package xdsupdate_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pilotkit/pilotkit/internal/test/histories"
	"github.com/pilotkit/pilotkit/internal/test/testmain"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

// ownedShard is what a shard of the model has: who may write to it, the addresses of its
// services, and the services that predecessors of the owner have written to and it
// has not.
type ownedShard struct {
	owner    *modelOwner // nil: nobody yet
	services map[string][]string
	written  map[string]bool
	left     map[string]bool
}

type modelOwner struct {
	xdsupdate.ShardWriter
	age    int
	closed bool
}

// take makes an owner that of the shard, if it may be.
func (s *ownedShard) take(o *modelOwner) bool {
	switch {
	case o.closed, s.owner != nil && s.owner != o && !s.owner.closed && s.owner.age > o.age:
		return false
	case s.owner != o:
		s.owner = o
		maps.Copy(s.left, s.written)
		s.written = map[string]bool{}
	}
	return true
}

func (s *ownedShard) set(service string, addresses []string) {
	delete(s.left, service)
	s.written[service] = true
	s.services[service] = addresses
}

// TestLoweredSizes runs the model without memory that is used again.
func TestLoweredSizes(t *testing.T) { testmain.Lowered(t, "^(TestModelOfOwners|TestCalls)$") }

// TestModelOfOwners: random calls of several owners, for several shards; what there is
// always equals a simple model, with updaters that know owners and one that does not.
func TestModelOfOwners(t *testing.T) {
	for name, newUpdater := range map[string]func(p *xdsupdate.Pusher) xdsupdate.XDSUpdater{
		"a pusher":  func(p *xdsupdate.Pusher) xdsupdate.XDSUpdater { return p },
		"a wrapper": func(p *xdsupdate.Pusher) xdsupdate.XDSUpdater { return plain{p} },
		"many": func(p *xdsupdate.Pusher) xdsupdate.XDSUpdater {
			return xdsupdate.Multi(newQuietPusher(), p, &xdstest.DeltaRecorder{})
		},
		"many without deltas": func(p *xdsupdate.Pusher) xdsupdate.XDSUpdater { return xdsupdate.Multi(plain{p}, p) },
		"owners of owners": func(p *xdsupdate.Pusher) xdsupdate.XDSUpdater {
			return xdsupdate.NewWriters(p).New()
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, seed := range histories.Seeds(t, 20) {
				p := newQuietPusher()
				testModelOfOwners(t, rand.New(rand.NewPCG(seed, 1)), p, xdsupdate.NewWriters(newUpdater(p)))
			}
		})
	}
}

func testModelOfOwners(t *testing.T, random *rand.Rand, p *xdsupdate.Pusher, writers *xdsupdate.Writers) {
	t.Helper()
	keys := []xdsupdate.ShardKey{shardOf("a"), shardOf("b")}
	names := []string{"x", "y", "z"}
	var shards []*ownedShard
	for range keys {
		shards = append(shards, &ownedShard{services: map[string][]string{}, written: map[string]bool{}, left: map[string]bool{}})
	}
	var all []*modelOwner
	for step := range 120 {
		if len(all) == 0 || random.IntN(12) == 0 {
			all = append(all, &modelOwner{ShardWriter: writers.New(), age: len(all)})
		}
		o := all[max(0, len(all)-1-random.IntN(3))]
		i := random.IntN(len(keys))
		key, s, service := keys[i], shards[i], names[random.IntN(len(names))]
		addresses := []string{address(random.IntN(3)), address(3 + random.IntN(3))}[:random.IntN(3)]
		var list []*registry.Endpoint
		for _, a := range addresses {
			list = append(list, ep(a))
		}
		what := ""
		switch random.IntN(9) {
		case 0:
			what = "close"
			o.Close()
			o.closed = true
		case 1:
			what = "prune"
			o.Complete()
			for _, s := range shards {
				if s.owner == o && !o.closed {
					for name := range s.left {
						delete(s.services, name)
					}
					clear(s.left)
				}
			}
		case 2:
			what = "remove the shard"
			o.RemoveShard(key)
			if s.take(o) {
				clear(s.services)
				clear(s.written)
				clear(s.left)
			}
		case 3:
			what = "delete"
			o.SvcUpdate(key, registry.Hostname(service), ns, registry.EventDelete)
			if s.take(o) {
				delete(s.services, service)
				delete(s.written, service)
				delete(s.left, service)
			}
		case 4, 5:
			deltas, ok := o.ShardWriter.(xdsupdate.EndpointDeltaUpdater)
			if !ok || len(list) == 0 {
				continue
			}
			what = "delta"
			added := list[0]
			deltas.EDSDeltaUpdate(key, registry.Hostname(service), ns, []xdsupdate.EndpointChange{{Old: ep(added.Address()), New: added}})
			if s.take(o) {
				now := s.services[service]
				if s.left[service] {
					now = nil // the first delta is the complete list
				}
				if !slices.Contains(now, added.Address()) {
					now = slices.Sorted(slices.Values(append(slices.Clone(now), added.Address())))
				}
				s.set(service, now)
			}
		default:
			what = "write"
			o.EDSUpdate(key, registry.Hostname(service), ns, list)
			if s.take(o) {
				s.set(service, addresses)
			}
		}
		for i, key := range keys {
			for _, service := range names {
				got := addressesOf(p.Index(), key, service)
				if diff := cmp.Diff(fmt.Sprint(shards[i].services[service]), fmt.Sprint(got)); diff != "" {
					t.Fatalf("step %d, %s by owner %d: %s of shard %v (-want +got):\n%s", step, what, o.age, service, key, diff)
				}
			}
		}
	}
}

func addressesOf(index *xdsupdate.EndpointIndex, shard xdsupdate.ShardKey, service string) []string {
	return addresses(index.Service(registry.Hostname(service), ns).Shard(shard))
}

// An owner behind another one has predecessors of its own: what they have left is neither
// changed by a delta nor pruned by the one that stands before it.
func TestOwnersBehindOwnersHavePredecessors(t *testing.T) {
	p := newQuietPusher()
	shard, behind := shardOf("a"), xdsupdate.NewWriters(p)
	write := func(o xdsupdate.ShardWriter, service, address string) {
		o.(xdsupdate.EndpointDeltaUpdater).EDSDeltaUpdate(shard, registry.Hostname(service), ns, []xdsupdate.EndpointChange{{New: ep(address)}})
	}
	want := func(when, x, y string) {
		t.Helper()
		got := fmt.Sprint(addressesOf(p.Index(), shard, "x"), addressesOf(p.Index(), shard, "y"))
		if want := x + " " + y; got != want {
			t.Errorf("%s there is %s, want %s", when, got, want)
		}
	}
	first := xdsupdate.NewWriters(behind.New()).New()
	write(first, "x", "1.1.1.1")
	write(first, "y", "2.2.2.2")
	successor := behind.New()
	second := xdsupdate.NewWriters(successor).New()
	write(second, "x", "3.3.3.3")
	want("after the first delta", "[3.3.3.3]", "[2.2.2.2]")
	write(second, "x", "4.4.4.4")
	want("after the second delta", "[3.3.3.3 4.4.4.4]", "[2.2.2.2]")
	second.Complete() // which has no predecessor
	want("after Prune of the owner before", "[3.3.3.3 4.4.4.4]", "[2.2.2.2]")
	successor.Complete()
	want("after Prune of the owner behind", "[3.3.3.3 4.4.4.4]", "[]")
}

// What was written without an owner is nobody's to prune, also where an owner has written before.
func TestPruneSparesWritesWithoutOwners(t *testing.T) {
	p := newQuietPusher()
	shard, writers := shardOf("a"), xdsupdate.NewWriters(p)
	writers.New().EDSUpdate(shard, "x", ns, []*registry.Endpoint{ep("1.1.1.1")})
	p.EDSUpdate(shard, "x", ns, []*registry.Endpoint{ep("2.2.2.2")})
	successor := writers.New()
	successor.Take(shard)
	successor.Complete()
	if got := addressesOf(p.Index(), shard, "x"); !slices.Equal(got, []string{"2.2.2.2"}) {
		t.Errorf("after Prune there is %v", got)
	}
}
