// SPDX-License-Identifier: Apache-2.0

package serviceentry

import (
	"fmt"
	"testing"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/configstore/memory"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// kept returns how many things the tables of a registry hold.
func (c *Controller) kept() map[string]int {
	return map[string]int{
		"labels": len(c.interner.labels), "attributes": len(c.interner.attributes),
		"spaces": len(c.spaces), "pods": len(c.pods), "foreign": len(c.foreign),
		"hosts": c.tables.hosts.Len(), "addresses": c.tables.addresses.Len() + c.tables.more.Len(), "services": len(c.publisher.State().services.List()),
	}
}

// TestNothingIsKept: what was replaced or deleted leaves nothing behind in any
// table, neither copies of attributes nor empty lists.
func TestNothingIsKept(t *testing.T) {
	t.Parallel()
	cache := memory.NewController(memory.Make(istio.Schemas()))
	c := New(cache, xdsupdate.Discard{})
	put := func(kind configstore.GroupVersionKind, name string, round int, config configstore.Config) {
		config.Meta = configstore.Meta{GroupVersionKind: kind, Namespace: "ns", Name: name}
		write := cache.Create
		if round > 0 {
			write = cache.Update
		}
		if _, err := write(config); err != nil {
			t.Fatal(err)
		}
		cache.Drain()
	}
	pod := func(round int) *registry.WorkloadInstance {
		return &registry.WorkloadInstance{Kind: registry.Pod, Namespace: "ns", Name: "p", Endpoint: &registry.Endpoint{
			Addresses: []string{fmt.Sprintf("3.3.3.%d", round), "2001:db8::1"},
			Shared:    &registry.EndpointAttributes{Labels: registry.Labels{"app": "web", "round": fmt.Sprint(round)}},
		}}
	}
	var first map[string]int
	for round := range 20 {
		labels := map[string]string{"app": "web", "round": fmt.Sprint(round)}
		entry := func(hosts ...string) *networking.ServiceEntry {
			return &networking.ServiceEntry{
				Hosts: hosts, Ports: []*networking.ServicePort{{Number: uint32(80 + round), Name: "http", Protocol: "HTTP"}},
				Resolution: networking.ServiceEntry_DNS,
			}
		}
		inline, selecting, self := entry("inline.com"), entry("selecting.com"), entry(fmt.Sprintf("self-%d.com", round))
		inline.Endpoints = []*networking.WorkloadEntry{{Address: fmt.Sprintf("1.1.1.%d", round), Labels: labels}, {Address: "1.1.1.1", Labels: labels}}
		selecting.WorkloadSelector = &networking.WorkloadSelector{Labels: map[string]string{"app": "web"}}
		put(istio.ServiceEntry, "inline", round, configstore.Config{Spec: inline})
		put(istio.ServiceEntry, "selecting", round, configstore.Config{Spec: selecting})
		put(istio.ServiceEntry, "self", round, configstore.Config{Spec: self})
		put(istio.WorkloadEntry, "w", round, configstore.Config{Spec: &networking.WorkloadEntry{Address: "2.2.2.2", Labels: labels}})
		c.WorkloadInstanceHandler(pod(round), registry.EventUpdate)
		switch got := c.kept(); {
		case round == 0:
		case round == 2:
			first = got
		case round > 2 && fmt.Sprint(got) != fmt.Sprint(first):
			t.Fatalf("round %d: tables hold %v, in round 2 %v", round, got, first)
		}
	}
	for _, name := range []string{"inline", "selecting", "self"} {
		if err := cache.Delete(istio.ServiceEntry, name, "ns", nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := cache.Delete(istio.WorkloadEntry, "w", "ns", nil); err != nil {
		t.Fatal(err)
	}
	cache.Drain()
	c.WorkloadInstanceHandler(pod(0), registry.EventDelete)
	for table, n := range c.kept() {
		if n != 0 {
			t.Errorf("%d %s are kept after all is gone", n, table)
		}
	}
}
