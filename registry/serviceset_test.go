// SPDX-License-Identifier: Apache-2.0

package registry_test

import (
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/pilotkit/pilotkit/internal/test/histories"
	"github.com/pilotkit/pilotkit/internal/test/testmain"
	"github.com/pilotkit/pilotkit/registry"
)

func member(host, namespace string, created int64) *registry.Service {
	return &registry.Service{
		Hostname: registry.Hostname(host), CreationTime: time.Unix(created, 0),
		Attributes: registry.ServiceAttributes{Namespace: namespace},
	}
}

// setModel is a ServiceSet and a plain map as its model.
type setModel struct {
	set  *registry.ServiceSet
	want map[registry.Hostname][]*registry.Service
}

func (m setModel) clone() setModel { return setModel{m.set, maps.Clone(m.want)} }

func (m setModel) check(t *testing.T) {
	t.Helper()
	var all []*registry.Service
	for n := range 40 {
		host := registry.Hostname(fmt.Sprint("h", n))
		services := m.want[host]
		all = append(all, services...)
		if got := m.set.Host(host); !slices.Equal(got, services) {
			t.Fatalf("Host(%s) = %v, want %v", host, got, services)
		}
		if got := m.set.Get(host); len(services) == 0 && got != nil || len(services) > 0 && got != services[0] {
			t.Fatalf("Get(%s) = %v, want the first of %v", host, got, services)
		}
	}
	slices.SortStableFunc(all, registry.CompareServices)
	list := m.set.List()
	if !slices.Equal(list, all) {
		t.Fatalf("List() has %d services, want %d, sorted", len(list), len(all))
	}
	if again := m.set.List(); len(list) > 0 && &again[0] != &list[0] {
		t.Fatal("List() makes another slice each time")
	}
}

func (m setModel) checkChanges(t *testing.T, old setModel) {
	t.Helper()
	var want []registry.Hostname
	for n := range 40 {
		host := registry.Hostname(fmt.Sprint("h", n))
		if !slices.Equal(m.want[host], old.want[host]) {
			want = append(want, host)
		}
	}
	got := slices.Sorted(m.set.ChangedSince(old.set))
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Fatalf("ChangedSince yields %v, want %v", got, want)
	}
}

func someServices(r *rand.Rand, host registry.Hostname) []*registry.Service {
	var out []*registry.Service
	for n := range r.IntN(4) {
		out = append(out, member(string(host), fmt.Sprint("ns", n), int64(r.IntN(3))))
	}
	slices.SortFunc(out, registry.ComparePrecedence)
	return out
}

// TestServiceSetHistories compares sets, also old ones and ones of different
// ancestry, with maps; lists are asked for now and then, so that they are made
// from near and far ones.
func TestServiceSetHistories(t *testing.T) {
	t.Parallel()
	for _, seed := range histories.Seeds(t, 20) {
		r := rand.New(rand.NewPCG(seed, 1))
		now := setModel{&registry.ServiceSet{}, map[registry.Hostname][]*registry.Service{}}
		var old []setModel
		for range 150 {
			now = now.clone()
			changes := map[registry.Hostname][]*registry.Service{}
			for range 1 + r.IntN(1+r.IntN(12)) {
				host := registry.Hostname(fmt.Sprint("h", r.IntN(40)))
				changes[host] = someServices(r, host)
			}
			if len(changes) == 1 {
				for host, services := range changes {
					now.set = now.set.With(host, services...)
				}
			} else {
				now.set = now.set.WithHosts(maps.All(changes))
			}
			maps.Copy(now.want, changes)
			if r.IntN(3) == 0 {
				now.check(t)
			}
			if r.IntN(4) == 0 {
				old = append(old, now, setModel{registry.NewServiceSet(now.set.List()...), now.want})
			}
			if len(old) > 0 {
				then := old[r.IntN(len(old))]
				then.check(t)
				now.checkChanges(t, then)
				then.checkChanges(t, now)
			}
		}
		now.check(t)
	}
}

func TestNilServiceSetIsEmpty(t *testing.T) {
	t.Parallel()
	var none *registry.ServiceSet
	if none.List() != nil || none.Get("a") != nil || none.Host("a") != nil {
		t.Error("a nil set has something")
	}
	s := member("a", "ns", 1)
	one := none.With("a", s)
	if one.Get("a") != s || len(one.List()) != 1 {
		t.Error("a nil set cannot be added to")
	}
	for name, changed := range map[string]iter.Seq[registry.Hostname]{
		"to one": one.ChangedSince(nil), "to none": none.ChangedSince(one),
	} {
		if got := slices.Collect(changed); !slices.Equal(got, []registry.Hostname{"a"}) {
			t.Errorf("ChangedSince %s yields %v", name, got)
		}
	}
	if got := slices.Collect(none.ChangedSince(&registry.ServiceSet{})); len(got) > 0 {
		t.Errorf("the zero value differs from nil in %v", got)
	}
}

func TestServiceSetRefusesOtherHostNames(t *testing.T) {
	t.Parallel()
	defer func() {
		if got, want := recover(), `registry: a service of host name "b" is set for "a"`; got != want {
			t.Errorf("panic %v, want %q", got, want)
		}
	}()
	new(registry.ServiceSet).With("a", member("b", "ns", 1))
}

// TestServiceSetReaders lists a set on several goroutines while other sets are derived from it.
func TestServiceSetReaders(t *testing.T) {
	t.Parallel()
	set := registry.NewServiceSet()
	for n := range 100 {
		set = set.With(registry.Hostname(fmt.Sprint("h", n)), member(fmt.Sprint("h", n), "ns", 1))
	}
	var wg sync.WaitGroup
	for n := range 4 {
		wg.Go(func() {
			list := set.List()
			for i := range 50 {
				next := set.With(registry.Hostname(fmt.Sprint("g", n, i)), member(fmt.Sprint("g", n, i), "ns", 1))
				if len(next.List()) != 101 {
					t.Errorf("List() has %d services, want 101", len(next.List()))
				}
				if again := set.List(); &again[0] != &list[0] {
					t.Error("two readers were given different slices")
				}
			}
		})
	}
	wg.Wait()
}

func BenchmarkServiceSetWith(b *testing.B) {
	for _, n := range []int{1000, 50_000} {
		services := make([]*registry.Service, n)
		for i := range services {
			services[i] = member(fmt.Sprintf("host-%06d", i), "ns", 1)
		}
		set := registry.NewServiceSet(services...)
		b.Run(fmt.Sprint("n=", n), func(b *testing.B) {
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				i = (i + 7919) % n
				set = set.With(services[i].Hostname, services[i])
			}
		})
		b.Run(fmt.Sprint("list/n=", n), func(b *testing.B) {
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				i = (i + 7919) % n
				set = set.With(services[i].Hostname, services[i])
				set.List()
			}
		})
	}
}

// TestLoweredSizes runs the histories with lists that are of no use any more at once.
func TestLoweredSizes(t *testing.T) { testmain.Lowered(t, "^TestServiceSetHistories$") }
