// SPDX-License-Identifier: Apache-2.0

package registry_test

import (
	"testing"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/memory"
)

// counting wraps a registry without changing its content.
type counting struct {
	registry.Instance
	reads int
}

func (c *counting) Unwrap() registry.Instance { return c.Instance }

func (c *counting) Services() []*registry.Service {
	c.reads++
	return c.Instance.Services()
}

// opaque wraps a registry and hides its abilities.
type opaque struct{ registry.Instance }

// receiver takes workloads.
type receiver struct {
	registry.Instance
	received int
}

func (r *receiver) WorkloadInstanceHandler(*registry.WorkloadInstance, registry.Event) { r.received++ }

func TestAsLooksThroughWrappers(t *testing.T) {
	t.Parallel()
	r := memory.New(memory.Options{})
	wrapped := &counting{Instance: &counting{Instance: r}}
	if got, ok := registry.As[registry.ServiceSnapshotter](wrapped); !ok || got != registry.ServiceSnapshotter(r) {
		t.Errorf("As through two wrappers = %v, %t, want the registry", got, ok)
	}
	if _, ok := registry.As[registry.ServiceSnapshotter](opaque{r}); ok {
		t.Error("As looks into a wrapper that has no Unwrap")
	}
	if _, ok := registry.As[registry.WorkloadReceiver](wrapped); ok {
		t.Error("As finds what the registry cannot do")
	}
	if got, ok := registry.As[registry.WorkloadReceiver](&counting{Instance: &receiver{Instance: r}}); !ok || got == nil {
		t.Error("As does not find the ability of a registry that is wrapped")
	}
	if _, ok := registry.As[registry.Subscriber](nil); ok {
		t.Error("As finds something in nil")
	}
}

// Simple takes each ability from the part that the ability belongs to.
func TestSimpleHasTheAbilitiesOfItsParts(t *testing.T) {
	t.Parallel()
	events, reads := &receiver{Instance: memory.New(memory.Options{})}, memory.New(memory.Options{})
	s := registry.Simple{Controller: events, ServiceDiscovery: reads, ProviderID: "mine", ClusterID: "east"}
	if err := reads.SetService(member("a", "ns", 1)); err != nil {
		t.Fatal(err)
	}
	if got := s.ServiceSnapshot(); got != reads.ServiceSnapshot() {
		t.Error("ServiceSnapshot is not that of the ServiceDiscovery")
	}
	s.WorkloadInstanceHandler(nil, registry.EventAdd)
	if events.received != 1 {
		t.Error("WorkloadInstanceHandler is not that of the Controller")
	}
	if got, ok := registry.As[*receiver](s); !ok || got != events {
		t.Error("As does not find the Controller")
	}
	if got, ok := registry.As[*memory.Registry](&counting{Instance: s}); !ok || got != reads {
		t.Error("As does not find the ServiceDiscovery")
	}
	if _, ok := registry.As[interface{ Unknown() }](s); ok {
		t.Error("As finds what no part can do")
	}
	if s.Provider() != "mine" || s.Cluster() != "east" {
		t.Errorf("%s/%s, want mine/east", s.Provider(), s.Cluster())
	}
}

// Simple has a fallback for each ability that a part lacks.
func TestSimpleWithoutAbilities(t *testing.T) {
	t.Parallel()
	r := memory.New(memory.Options{})
	part := opaque{r}
	s := registry.Simple{Controller: part, ServiceDiscovery: part}
	if s.ServiceSnapshot() != nil {
		t.Error("a snapshot of a registry that has none")
	}
	s.WorkloadInstanceHandler(nil, registry.EventAdd) // nothing happens
	for name, wrapped := range map[string]registry.Simple{"without": s, "with": {Controller: r, ServiceDiscovery: r}} {
		t.Run(name, func(t *testing.T) {
			services, workloads, gateways := 0, 0, 0
			cancels := []func(){
				wrapped.SubscribeServices(func(_, _ *registry.Service, _ registry.Event) { services++ }),
				wrapped.SubscribeWorkloads(func(*registry.WorkloadInstance, registry.Event) { workloads++ }),
				wrapped.SubscribeNetworkGateways(func() { gateways++ }),
			}
			change := func(i int64) {
				w := &registry.WorkloadInstance{Name: name, Endpoint: &registry.Endpoint{ServicePort: uint32(i)}}
				if err := r.SetService(member(name, string(rune('a'+i)), i)); err != nil {
					t.Fatal(err)
				}
				if err := r.SetWorkload(w); err != nil {
					t.Fatal(err)
				}
				r.SetNetworkGateways([]registry.NetworkGateway{{Addr: name, Port: uint32(i)}})
			}
			services, workloads = 0, 0
			change(1)
			if services != 1 || workloads != 1 || gateways != 1 {
				t.Errorf("%d, %d and %d calls, want one each", services, workloads, gateways)
			}
			for _, cancel := range cancels {
				cancel()
				cancel()
			}
			change(2)
			if services != 1 || workloads != 1 || gateways != 1 {
				t.Errorf("%d, %d and %d calls, the last ones after cancel", services, workloads, gateways)
			}
		})
	}
}
