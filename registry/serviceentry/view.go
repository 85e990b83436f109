// SPDX-License-Identifier: Apache-2.0

package serviceentry

import (
	"cmp"
	"slices"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/internal/pmap"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/serviceentry/internal/view"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// View returns the data for package explain: the visible state and its inputs. It converts all
// objects again.
func (c *Controller) View() *view.View {
	fresh := c.recomputed()
	out := &view.View{
		Shown: c.publisher.State().shown(), Wanted: fresh.publisher.State().shown(),
		Ignored: c.whyIgnored, Cluster: c.options.ClusterID,
	}
	viewed := map[*workload]*view.Workload{}
	for _, w := range fresh.workloads() {
		viewed[w] = &view.Workload{Key: w.key(), Endpoint: w.endpoint(), Ports: w.ports(), NeedsDNS: w.dnsOnly}
		out.Workloads = append(out.Workloads, viewed[w])
	}
	for _, s := range fresh.spaces {
		for _, e := range s.entries {
			out.Entries = append(out.Entries, e.viewed(viewed))
		}
	}
	slices.SortFunc(out.Entries, func(d, e *view.Entry) int {
		return cmp.Or(d.Config.CreationTimestamp.Compare(e.Config.CreationTimestamp), nameOf(d.Config).compare(nameOf(e.Config)))
	})
	return out
}

// recomputed returns a new registry with the present objects, which should be equal to this one.
func (c *Controller) recomputed() *Controller {
	fresh := newController(c.configs, xdsupdate.Discard{}, c.options)
	fresh.settings = c.publisher.State().settings
	var events []event
	for _, kind := range c.kinds() {
		for _, config := range c.configs.List(kind, configstore.NamespaceAll) {
			events = append(events, event{config: config})
		}
	}
	c.foreignMu.Lock()
	for _, w := range c.foreign {
		events = append(events, event{workload: w.instance})
	}
	c.foreignMu.Unlock()
	fresh.handle(events)
	return fresh
}

// workloads returns all valid workloads, in the order in which entries select them.
func (c *Controller) workloads() []*workload {
	return slices.SortedFunc(func(yield func(*workload) bool) {
		for _, s := range c.spaces {
			for _, g := range s.groups {
				for _, w := range g.workloads {
					if !yield(w) {
						return
					}
				}
			}
		}
	}, (*workload).compare)
}

// viewed returns the view of an entry that will not change any more.
func (e *entry) viewed(workloads map[*workload]*view.Workload) *view.Entry {
	out := &view.Entry{Config: e.config, Resolution: e.resolution, Selects: e.selects, Selector: e.selector}
	for _, b := range e.bindings {
		h := view.Host{Hostname: b.host.hostname, Services: b.services}
		if b.self != nil {
			h.Self = b.self.endpoints
		}
		out.Hosts = append(out.Hosts, h)
	}
	slices.SortFunc(e.selected, func(m, n *contribution) int { return m.workload.compare(n.workload) })
	for m := range e.contributions {
		out.Sources = append(out.Sources, view.Source{
			Workload: workloads[m.workload], Position: int(m.position), Endpoints: m.endpoints,
		})
	}
	return out
}

func (c *Controller) whyIgnored(key registry.WorkloadKey) string {
	if key.Kind != registry.WorkloadEntry || key.Cluster != c.options.ClusterID {
		return "no registry has announced it"
	}
	config := c.configs.Get(istio.WorkloadEntry, key.Name, key.Namespace)
	switch {
	case config == nil:
		return "it does not exist"
	case !c.options.IgnoreHealth && !healthy(config):
		return "it is not healthy"
	default:
		return "it has no spec"
	}
}

// shown returns what readers of the state see. Changes that are under way may add
// keys that the state does not have yet.
func (s *state) shown() view.Shown {
	out := view.Shown{Services: s.services.List(), Instances: map[string][]registry.ServiceInstance{}}
	s.tables.hosts.Entries(func(e *pmap.Entry[hostKey, *host]) bool {
		if h := s.host(e.Key); h != nil {
			out.Hosts = append(out.Hosts, view.HostEndpoints{
				Namespace: e.Key.namespace, Hostname: e.Key.hostname, Endpoints: h.endpoints.Slice(),
			})
		}
		return true
	})
	s.tables.addresses.Each(func(m *contribution, _ uint16) bool {
		for _, a := range m.addresses() {
			if address := addressText(a); out.Instances[address] == nil {
				out.Instances[address] = s.instancesAt(address, "", nil)
			}
		}
		return true
	})
	return out
}
