// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"fmt"
	"slices"
	"testing"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

const contestedAddresses = 20

// contestedSlice is one of many slices that list the same addresses.
func contestedSlice(i int, c conditions) event {
	s := &slice{objectKey: objectKey{"ns", fmt.Sprintf("s%04d", i)}, service: "a", ports: []slicePort{{"http", 8080}}}
	for j := range contestedAddresses {
		s.endpoints = append(s.endpoints, sliceEndpoint{address: fmt.Sprintf("10.0.0.%02d", j), position: int32(j), conditions: c})
	}
	return event{key: s.objectKey, object: s}
}

func contestedEngine() *engine {
	options := Options{}.withDefaults()
	e := newEngine(&options)
	k := objectKey{"ns", "a"}
	e.apply(event{key: k, object: &service{objectKey: k, ports: []servicePort{{name: "http", number: 80}}}})
	return e
}

// Of many slices that list the same addresses endpoints are elected a few times for each
// address, however many slices there are.
func TestSlicesWithTheSameAddresses(t *testing.T) {
	t.Parallel()
	e := contestedEngine()
	const many = 200
	elections := func(events ...event) int {
		defer e.end()
		for _, ev := range events {
			e.apply(ev)
		}
		e.compute()
		if len(e.batch.hosts) != 1 {
			t.Fatalf("%d hosts", len(e.batch.hosts))
		}
		return len(e.batch.hosts[0].work.touched)
	}
	healthy := func() (n int) {
		v, _ := e.hosts.Get("a.ns.svc.cluster.local")
		for ep := range v.endpoints.All() {
			if ep.HealthStatus == registry.Healthy {
				n++
			}
		}
		return n
	}
	var all, unready, gone []event
	for i := range many {
		all, unready = append(all, contestedSlice(i, ready)), append(unready, contestedSlice(i, 0))
		gone = append(gone, event{key: contestedSlice(i, 0).key, object: (*slice)(nil)})
	}
	for _, step := range []struct {
		what    string
		events  []event
		healthy int
	}{
		{"a list", all, contestedAddresses},
		{"the list, unready", unready, 0},
		{"one that is ready", all[many-1:], contestedAddresses},
		{"all but the first go", gone[1:], 0},
	} {
		if n := elections(step.events...); n > 3*contestedAddresses {
			t.Errorf("%s: %d elections for %d addresses", step.what, n, contestedAddresses)
		}
		if n := healthy(); n != step.healthy {
			t.Errorf("%s: %d endpoints are healthy, want %d", step.what, n, step.healthy)
		}
	}
}

func BenchmarkSlicesWithTheSameAddresses(b *testing.B) {
	for _, many := range []int{250, 500, 1000, 2000} {
		b.Run(fmt.Sprintf("slices=%d", many), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				c := New(nil, xdsupdate.Discard{})
				k := objectKey{"ns", "a"}
				c.publisher.Enqueue(event{key: k, object: &service{objectKey: k, ports: []servicePort{{name: "http", number: 80}}}})
				r := &relist{known: knownSlices}
				for i := range many {
					r.objects = append(r.objects, contestedSlice(i, ready))
				}
				c.publisher.Enqueue(event{relist: r})
				c.Drain()
			}
		})
	}
}

// Extending a list repeatedly does not change lists that were read before.
func TestListWith(t *testing.T) {
	t.Parallel()
	var l list[int]
	var before []list[int]
	for i := 1; i < 50; i++ {
		before = append(before, l)
		if l = l.with(i); i%7 == 0 {
			l = l.without(i - 3).with(i - 3)
		}
	}
	for i, b := range before {
		got := slices.Sorted(b.all)
		for j := range i {
			if len(got) != i || got[j] != j+1 {
				t.Fatalf("list %d is %v", i, got)
			}
		}
	}
}
