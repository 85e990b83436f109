// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
)

// indexed describes an index.
func indexed(x *index) []string {
	var out []string
	for _, v := range x.virtualServices {
		out = append(out, "VirtualService "+v.String())
	}
	for _, g := range x.gateways {
		out = append(out, "Gateway "+g.String())
	}
	for _, key := range slices.Sorted(maps.Keys(x.sidecars)) {
		for _, s := range x.sidecars[key] {
			out = append(out, "Sidecar "+s.String())
		}
	}
	var rest []string
	for key, h := range x.rules.hosts.All() {
		rest = append(rest, fmt.Sprint("rules ", key, len(h.objects)))
	}
	for key, list := range x.finder.lists.All() {
		rest = append(rest, fmt.Sprint("found by ", key, len(list)))
	}
	for key, n := range x.labelKeys.All() {
		rest = append(rest, fmt.Sprint("key ", key, n))
	}
	slices.Sort(rest)
	return append(out, rest...)
}

// TestManyChanges: an index after many changes at once is the one after the same
// changes one by one, and the one of what there is then.
func TestManyChanges(t *testing.T) {
	s := newSettings(Options{})
	object := func(i, generation int) *configstore.Config {
		c := &configstore.Config{Meta: configstore.Meta{
			Namespace: fmt.Sprintf("n%d", i%3), Name: fmt.Sprintf("o%03d", i), CreationTimestamp: time.Unix(int64(i%7), 0),
		}}
		host := fmt.Sprintf("h%d.example.com", (i+generation)%20)
		switch i % 4 {
		case 0:
			c.GroupVersionKind = istio.VirtualService
			c.Spec = &networking.VirtualService{Hosts: []string{host}, Http: []*networking.HTTPRoute{{
				Route: []*networking.HTTPRouteDestination{{Destination: &networking.Destination{Host: host}}},
			}}}
		case 1:
			c.GroupVersionKind, c.Spec = istio.DestinationRule, &networking.DestinationRule{Host: host}
		case 2:
			c.GroupVersionKind, c.Spec = istio.Gateway, &networking.Gateway{Selector: map[string]string{host: "x"}}
		default:
			c.GroupVersionKind, c.Spec = istio.Sidecar, &networking.Sidecar{}
		}
		return c
	}
	var before, after configList
	var changes []objectChange
	for i := range 300 {
		ch := objectChange{key: object(i, 0).Key()}
		if i%5 > 0 {
			before = append(before, object(i, 0))
			ch.before = newObject(object(i, 0), s)
		}
		if i%7 > 0 {
			after = append(after, object(i, 1))
			ch.after = newObject(object(i, 1), s)
		}
		changes = append(changes, ch)
	}
	x := newIndex(before, s)
	for i := range changes { // the index knows an object by its pointer
		changes[i].before, _ = x.objects.Get(changes[i].key)
	}
	one := x
	for _, ch := range changes {
		one = one.with(ch.key, ch.before, ch.after)
	}
	want := indexed(newIndex(after, s))
	if diff := cmp.Diff(want, indexed(x.withAll(changes))); diff != "" {
		t.Errorf("at once (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want, indexed(one)); diff != "" {
		t.Errorf("one by one (-want +got):\n%s", diff)
	}
}
