// SPDX-License-Identifier: Apache-2.0

package aggregate_test

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"
	"weak"

	"github.com/pilotkit/pilotkit/aggregate"
	"github.com/pilotkit/pilotkit/registry"
)

// quiet is a registry that notifies no handler until notify is called.
type quiet struct {
	stub
	handlers []registry.ServiceHandler
	// reading is called by the next Services.
	reading func()
}

func newQuiet(services ...*registry.Service) *quiet {
	return &quiet{stub: stub{cluster: "c1", services: services}}
}

// HasSynced: it never has, so that nothing of its predecessors is pruned.
func (q *quiet) HasSynced() bool { return false }

func (q *quiet) AppendServiceHandler(h registry.ServiceHandler) { q.handlers = append(q.handlers, h) }

func (q *quiet) Services() []*registry.Service {
	if f := q.reading; f != nil {
		q.reading = nil
		f()
	}
	return q.stub.Services()
}

func (q *quiet) notify() {
	for _, s := range q.services {
		q.send(nil, s, registry.EventAdd)
	}
}

func (q *quiet) send(prev, curr *registry.Service, event registry.Event) {
	for _, h := range q.handlers {
		h(prev, curr, event)
	}
}

// In Istio 1.30 it is events that nothing is cached for; here what is cached does
// not depend on them.
func TestServicesOfARegistryWithoutEventsAreCurrent(t *testing.T) {
	q := newQuiet(service("a", "ns"))
	c := aggregate.NewController(aggregate.Options{})
	c.AddRegistry(given(q))
	expect(t, "services", listed(c.Services()), []string{"/ns/a"})
	before := c.Services()
	if after := c.Services(); &after[0] != &before[0] {
		t.Error("nothing has changed and Services is not the same slice")
	}
	q.services = append(slices.Clip(q.services), service("b", "ns"))
	expect(t, "services", listed(c.Services()), []string{"/ns/a", "/ns/b"})
	if c.GetService("b") != q.services[1] {
		t.Error("GetService does not have the new service")
	}
	expect(t, "the slice handed out before", listed(before), []string{"/ns/a"})
	q.services = slices.Clone(q.services)
	if after := c.GetService("b"); after != q.services[1] {
		t.Error("another slice of the same services has other services")
	}
	q.services = nil
	expect(t, "services", listed(c.Services()), nil)
}

func TestSuccessorsThatHaveSentNothingYet(t *testing.T) {
	one, two, three := newQuiet(service("a", "ns"), service("b", "ns")), newQuiet(service("a", "ns")), newQuiet(service("a", "ns"))
	c := aggregate.NewController(aggregate.Options{})
	c.AddRegistry(given(one))
	var h eventLog
	c.AppendServiceHandler(h.service)
	one.notify()
	h.expect(t, "add a 0.0.0.0", "add b 0.0.0.0")
	c.UpdateRegistry(given(two))
	h.expect(t, "delete b 0.0.0.0")
	c.UpdateRegistry(given(three))
	h.expect(t)
	var late eventLog
	c.AppendServiceHandler(late.service)
	late.expect(t, "add a 0.0.0.0")
	three.notify() // the same
	h.expect(t)
	c.UpdateRegistry(given(two))
	c.DeleteRegistryIfCurrent(two)
	h.expect(t, "delete a 0.0.0.0")
	late.expect(t, "delete a 0.0.0.0")
	one.notify()
	three.notify()
	h.expect(t)
}

// A registry that comes while the services are being read is not lost.
func TestRegistryAddedDuringARead(t *testing.T) {
	q := newQuiet(service("a", "ns"))
	c := aggregate.NewController(aggregate.Options{})
	c.AddRegistry(given(q))
	other := newRegistry(registry.External, "c1")
	set(t, other, service("b", "ns"))
	q.reading = func() { c.AddRegistry(given(other)) }
	c.Services()
	expect(t, "order", shards(c), "Kubernetes/c1 External/c1")
	expect(t, "services", listed(c.Services()), []string{"/ns/a", "External/ns/b"})
}

// Handlers may do anything to the aggregate that calls them.
func TestHandlersMayCallBack(t *testing.T) {
	one, two := newRegistry(registry.Kubernetes, "c1"), newRegistry(registry.Kubernetes, "c2")
	set(t, two, service("b", "ns"))
	c := aggregate.NewController(aggregate.Options{})
	c.AddRegistry(given(one))
	var h, inner eventLog
	var once sync.Once
	c.AppendServiceHandler(h.service)
	c.AppendServiceHandler(func(_, _ *registry.Service, _ registry.Event) {
		once.Do(func() {
			c.AddRegistry(given(two))
			c.AppendServiceHandler(inner.service)
			c.DeleteRegistry("c1", registry.Kubernetes)
		})
	})
	set(t, one, service("a", "ns"))
	h.expect(t, "add a 0.0.0.0", "add b 0.0.0.0", "delete a 0.0.0.0")
	expect(t, "services", listed(c.Services()), []string{"Kubernetes/ns/b"})
}

// Few changes and many take different ways to the same end.
func TestServicesChangeInBulk(t *testing.T) {
	q, other := newQuiet(), newRegistry(registry.External, "c1")
	set(t, other, service("host-0050", "ns"), service("host-1000", "ns"), service("a", "ns"))
	c := aggregate.NewController(aggregate.Options{})
	c.AddRegistry(given(q))
	c.AddRegistry(given(other))
	for round, step := range []int{1, 2, 3, 50, 7, 1} {
		var services []*registry.Service
		for i := 0; i < 200; i += step {
			services = append(services, service(fmt.Sprintf("host-%04d", i), "ns", at(fmt.Sprint("10.0.0.", round))))
		}
		q.services = services
		want := slices.SortedStableFunc(slices.Values(slices.Concat(services, other.Services())), registry.CompareServices)
		if got := c.Services(); !slices.Equal(got, want) {
			t.Fatalf("round %d: Services() = %v, want %v", round, described(got), described(want))
		}
		for i := range 200 {
			host := registry.Hostname(fmt.Sprintf("host-%04d", i))
			right := other.GetService(host)
			if i%step == 0 {
				right = services[i/step]
			}
			if got := c.GetService(host); got != right {
				t.Fatalf("round %d: GetService(%s) = %v, want %v", round, host,
					described([]*registry.Service{got}), described([]*registry.Service{right}))
			}
		}
	}
}

// A registry without snapshots that does not say which of its services wins.
func TestPrecedenceOfListedServices(t *testing.T) {
	created := func(seconds int64, object string) func(*registry.Service) {
		return func(s *registry.Service) {
			s.CreationTime, s.Attributes.ObjectName = time.Unix(seconds, 0), object
		}
	}
	q := newQuiet(service("a", "ns1", created(2, "a")), service("a", "ns2", created(1, "b")), service("a", "ns3", created(1, "a")))
	c := aggregate.NewController()
	c.AddRegistry(given(q))
	if got := c.GetService("a"); got != q.services[1] {
		t.Errorf("GetService = %s, want that of ns2: the oldest, then the namespace", got.Key())
	}
	q.byHost = map[registry.Hostname]*registry.Service{"a": q.services[2]}
	q.services = slices.Clone(q.services)
	q.services[0] = service("a", "ns1", created(3, "a"))
	if got := c.GetService("a"); got != q.services[2] {
		t.Errorf("GetService = %s, want that of ns3: the registry's own answer", got.Key())
	}
}

// Two clusters, of which the first has several services of a host: the one that
// wins there is the base.
func TestPrecedenceOfClusterServices(t *testing.T) {
	one, two := newRegistry(registry.Kubernetes, "c1"), newRegistry(registry.Kubernetes, "c2")
	object := func(name string) func(*registry.Service) {
		return func(s *registry.Service) { s.Attributes.ObjectName = name }
	}
	set(t, one, service("a", "ns2", object("a"), vip("c1", "1.1.1.2")), service("a", "ns1", object("b"), vip("c1", "1.1.1.1")))
	set(t, two, service("a", "ns3", vip("c2", "2.2.2.2")))
	c := aggregate.NewController()
	c.AddRegistry(given(one))
	c.AddRegistry(given(two))
	got := c.GetService("a")
	expect(t, "winner", got.Key(), "ns1/a")
	expect(t, "VIPs", got.ClusterVIPs, map[registry.ClusterID][]string{"c1": {"1.1.1.1"}, "c2": {"2.2.2.2"}})
}

// Of a registry that makes another list for each change only the first and the last one
// are kept, whatever is still in use of those between them.
func TestFormerListsAreNotKept(t *testing.T) {
	q := newQuiet(service("a", "ns"), service("b", "ns"), service("c", "ns"))
	c := aggregate.NewController()
	c.AddRegistry(given(q))
	c.Services()
	var lists []weak.Pointer[*registry.Service]
	for i, host := range []string{"a", "b", "c"} {
		q.services = slices.Clone(q.services)
		q.services[i] = service(host, "ns", at("1.1.1.1"))
		lists = append(lists, weak.Make(&q.services[0]))
		c.Services()
	}
	runtime.GC()
	if lists[0].Value() != nil || lists[1].Value() != nil {
		t.Error("a former list of the registry is kept")
	}
	if lists[2].Value() == nil {
		t.Error("the present list is not kept") // or nothing was tested
	}
	runtime.KeepAlive(c)
}
