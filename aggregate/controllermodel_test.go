// SPDX-License-Identifier: Apache-2.0

package aggregate_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/pilotkit/pilotkit/aggregate"
	"github.com/pilotkit/pilotkit/internal/test/histories"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/memory"
)

// mesh is an aggregate with the registries that it should have, in order.
type mesh struct {
	t       *testing.T
	c       *aggregate.Controller
	members []*memory.Registry
	// spare are registries that were removed and may come back.
	spare []*memory.Registry
}

func (m *mesh) add(r *memory.Registry) {
	at := len(m.members)
	if r.Provider() == registry.Kubernetes {
		if i := slices.IndexFunc(m.members, func(s *memory.Registry) bool { return s.Provider() != registry.Kubernetes }); i >= 0 {
			at = i
		}
	}
	m.members = slices.Insert(m.members, at, r)
	m.c.AddRegistry(given(r))
}

func (m *mesh) remove(i int) {
	m.spare = append(m.spare, m.members[i])
	m.c.DeleteRegistry(m.members[i].Cluster(), m.members[i].Provider())
	m.members = slices.Delete(m.members, i, i+1)
}

func (m *mesh) replace(i int, rng *rand.Rand) {
	r := newRegistry(m.members[i].Provider(), m.members[i].Cluster())
	for n := range 4 {
		if rng.IntN(2) == 0 {
			_ = r.SetService(randomService(rng, r, fmt.Sprint("r", n)))
		}
	}
	m.members[i] = r
	m.c.UpdateRegistry(given(r))
}

// merged recomputes Services and the answers of GetService.
func (m *mesh) merged() ([]*registry.Service, map[registry.Hostname]*registry.Service) {
	var all []*registry.Service
	first := map[registry.Hostname]*registry.Service{}
	clusters := map[registry.Hostname]*registry.Service{}
	for _, r := range m.members {
		for _, s := range r.Services() {
			if r.Provider() != registry.Kubernetes {
				all = append(all, s)
				continue
			}
			base := clusters[s.Hostname]
			if base == nil {
				c := *s
				c.ClusterVIPs = maps.Clone(s.ClusterVIPs)
				clusters[s.Hostname] = &c
				all = append(all, &c)
				first[s.Hostname] = &c
				continue
			}
			if vips := s.ClusterVIPs[r.Cluster()]; len(vips) > 0 && len(base.ClusterVIPs[r.Cluster()]) == 0 {
				if base.ClusterVIPs == nil {
					base.ClusterVIPs = map[registry.ClusterID][]string{}
				}
				base.ClusterVIPs[r.Cluster()] = vips
			}
			for _, a := range s.ServiceAccounts {
				if !slices.Contains(base.ServiceAccounts, a) {
					base.ServiceAccounts = append(slices.Clip(base.ServiceAccounts), a)
				}
			}
		}
	}
	for _, r := range m.members {
		for _, s := range r.Services() {
			if first[s.Hostname] == nil {
				first[s.Hostname] = r.GetService(s.Hostname)
			}
		}
	}
	slices.SortStableFunc(all, registry.CompareServices)
	return all, first
}

func (m *mesh) check(when string) {
	m.t.Helper()
	want, first := m.merged()
	got := m.c.Services()
	if !slices.EqualFunc(got, want, (*registry.Service).Equal) {
		m.t.Fatalf("%s: Services() = %v, want %v", when, described(got), described(want))
	}
	for n := range 5 {
		host := registry.Hostname(fmt.Sprint("h", n))
		s := m.c.GetService(host)
		if !s.Equal(first[host]) {
			m.t.Fatalf("%s: GetService(%s) = %v, want %v", when, host, described([]*registry.Service{s}), described([]*registry.Service{first[host]}))
		}
		if s != nil && !slices.Contains(got, s) {
			m.t.Fatalf("%s: GetService(%s) is not one of Services", when, host)
		}
	}
}

func described(services []*registry.Service) []string {
	var out []string
	for _, s := range services {
		if s == nil {
			out = append(out, "nil")
			continue
		}
		out = append(out, fmt.Sprint(s.Attributes.Provider, " ", s.Key(), " ", s.DefaultAddress, " ", s.ClusterVIPs, " ", s.ServiceAccounts))
	}
	return out
}

// Services of Kubernetes have one namespace for each host name, as in life.
func randomService(rng *rand.Rand, r *memory.Registry, address string) *registry.Service {
	n := rng.IntN(5)
	namespace := fmt.Sprint("ns", n%2)
	if r.Provider() != registry.Kubernetes {
		namespace = fmt.Sprint("ns", rng.IntN(3))
	}
	s := service(fmt.Sprint("h", n), namespace, at(address), func(s *registry.Service) { s.CreationTime = time.Unix(int64(rng.IntN(3)), 0) })
	if rng.IntN(2) == 0 {
		vip(r.Cluster(), address)(s)
		s.Attributes.ClusterExternalAddresses = nil
	}
	if rng.IntN(2) == 0 {
		accounts(fmt.Sprint("sa", rng.IntN(4)), fmt.Sprint("sa", 4+rng.IntN(4)))(s)
	}
	return s
}

// history applies the events that handlers get. Of one registry it is what the registry
// has; of all together, each service once for each registry.
type history struct {
	t     *testing.T
	mu    sync.Mutex
	count map[string]int
}

func (h *history) handle(prev, curr *registry.Service, event registry.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch event {
	case registry.EventAdd:
		h.count[line(curr)]++
	case registry.EventUpdate:
		h.count[line(prev)]--
		h.count[line(curr)]++
	case registry.EventDelete:
		h.count[line(curr)]--
	}
	for _, s := range []*registry.Service{prev, curr} {
		if s != nil && h.count[line(s)] < 0 {
			h.t.Errorf("%s of %s, which was not there", event, line(s))
		}
	}
}

func line(s *registry.Service) string {
	return fmt.Sprint(s.Attributes.Provider, " ", s.Key(), " ", s.DefaultAddress, " ", s.ClusterVIPs, " ", s.ServiceAccounts)
}

func (h *history) expect(when string, members []*memory.Registry) {
	h.t.Helper()
	want := map[string]int{}
	for _, r := range members {
		for _, s := range r.Services() {
			want[line(s)]++
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	maps.DeleteFunc(h.count, func(_ string, n int) bool { return n == 0 })
	if !maps.Equal(h.count, want) {
		h.t.Fatalf("%s: handlers got %v, want %v", when, h.count, want)
	}
}

// TestControllerRandomHistories compares reads and events with a recomputation
// from the registries after random changes in them and of them.
func TestControllerRandomHistories(t *testing.T) {
	for _, seed := range histories.Seeds(t, 20) {
		rng := rand.New(rand.NewPCG(seed, 3))
		m := &mesh{t: t, c: aggregate.NewController(aggregate.Options{}), spare: []*memory.Registry{
			newRegistry(registry.Kubernetes, "c1"), newRegistry(registry.External, "c1"), newRegistry(registry.Kubernetes, "c2"),
			newRegistry("Mock", "c1"), newRegistry(registry.Kubernetes, "c3"),
		}}
		var lines []*history
		for step := range 200 {
			when := fmt.Sprintf("seed %d, step %d", seed, step)
			switch p := rng.IntN(20); {
			case p < 2 && len(m.spare) > 0:
				i := rng.IntN(len(m.spare))
				m.add(m.spare[i])
				m.spare = slices.Delete(m.spare, i, i+1)
			case p == 2 && len(m.members) > 0:
				m.remove(rng.IntN(len(m.members)))
			case p == 3 && len(m.members) > 0:
				m.replace(rng.IntN(len(m.members)), rng)
			case p == 4 && len(lines) < 4:
				h := &history{t: t, count: map[string]int{}}
				m.c.AppendServiceHandler(h.handle)
				lines = append(lines, h)
			case p < 15 && len(m.members) > 0:
				r := m.members[rng.IntN(len(m.members))]
				_ = r.SetService(randomService(rng, r, fmt.Sprint("10.0.0.", step)))
			case len(m.members) > 0:
				r := m.members[rng.IntN(len(m.members))]
				_ = r.RemoveService(registry.Hostname(fmt.Sprint("h", rng.IntN(5))), fmt.Sprint("ns", rng.IntN(3)))
			}
			if rng.IntN(3) == 0 {
				m.check(when)
			}
			for _, h := range lines {
				h.expect(when, m.members)
			}
			if t.Failed() {
				t.Fatal(when)
			}
		}
		m.check("at the end")
	}
}

// TestControllerConcurrentHistories changes registries, the set of them and the
// handlers while others read.
func TestControllerConcurrentHistories(t *testing.T) {
	m := &mesh{t: t, c: aggregate.NewController(aggregate.Options{})}
	for _, cluster := range []registry.ClusterID{"c1", "c2"} {
		m.add(newRegistry(registry.Kubernetes, cluster))
		m.add(newRegistry(registry.External, cluster))
	}
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		m.c.Run(stop)
	}()
	early, late := &history{t: t, count: map[string]int{}}, &history{t: t, count: map[string]int{}}
	m.c.AppendServiceHandler(early.handle)
	done := make(chan struct{})
	var readers, writers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				if services := m.c.Services(); !slices.IsSortedFunc(services, registry.CompareServices) {
					t.Errorf("Services() = %v, want it sorted", described(services))
					return
				}
				m.c.GetService("h1")
				m.c.GetProxyWorkloadLabels(&registry.Proxy{ClusterID: "c1"})
			}
		})
	}
	for i, r := range m.members {
		writers.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(i), 4))
			for step := range 200 {
				_ = r.SetService(randomService(rng, r, fmt.Sprint("10.0.0.", step)))
				if rng.IntN(2) == 0 {
					_ = r.RemoveService(registry.Hostname(fmt.Sprint("h", rng.IntN(5))), fmt.Sprint("ns", rng.IntN(3)))
				}
			}
		})
	}
	writers.Go(func() {
		for range 20 {
			r := newRegistry(registry.Kubernetes, "c9")
			_ = r.SetService(service("h1", "ns1"))
			m.c.AddRegistry(given(r))
			_ = r.SetService(service("h2", "ns0"))
			m.c.DeleteRegistryIfCurrent(r)
		}
	})
	m.c.AppendServiceHandler(late.handle)
	writers.Wait()
	close(done)
	readers.Wait()
	m.check("at the end")
	// Whichever goroutine is at it delivers what is queued; this comes last, and to the first
	// two handlers before.
	delivered := make(chan struct{})
	m.c.AppendServiceHandler(func(_, curr *registry.Service, _ registry.Event) {
		if curr.Hostname == "last" {
			close(delivered)
		}
	})
	_ = m.members[0].SetService(service("last", "ns1"))
	<-delivered
	close(stop)
	<-ended
	for _, h := range []*history{early, late} {
		h.expect("at the end", m.members)
	}
}
