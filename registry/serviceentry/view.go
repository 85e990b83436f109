// SPDX-License-Identifier: Apache-2.0

package serviceentry

import (
	"cmp"
	"maps"
	"slices"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/internal/pmap"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/serviceentry/internal/view"
)

// View is for package explain: what is in the stores, converted anew, and what the
// registry shows. It costs as much as all objects together.
func (c *Controller) View() *view.View {
	s := c.state.Load()
	conversion := conversion{options: &c.options, settings: s.settings}
	own := c.configs.List(istio.WorkloadEntry, configstore.NamespaceAll)
	workloads := c.viewedWorkloads(&conversion, own)
	out := &view.View{Ignored: c.whyIgnored, Cluster: c.options.ClusterID, Shown: s.shown()}
	converted := make(map[*view.Workload]*workload, len(workloads))
	for _, w := range workloads {
		v := &view.Workload{Key: w.key(), Endpoint: w.endpoint(), Ports: w.ports(), NeedsDNS: w.dnsOnly}
		out.Workloads, converted[v] = append(out.Workloads, v), w
	}
	if c.options.WorkloadEntriesOnly {
		return out
	}
	for _, config := range c.configs.List(istio.ServiceEntry, configstore.NamespaceAll) {
		if d, hosts := conversion.definition(config); d != nil {
			e := conversion.viewedEntry(d, hosts)
			e.Selected = func(w *view.Workload) []registry.Endpoint { return selectedMember(nil, d, converted[w]).endpoints }
			out.Entries = append(out.Entries, e)
		}
	}
	slices.SortFunc(out.Entries, func(d, e *view.Entry) int {
		return cmp.Or(d.Config.CreationTimestamp.Compare(e.Config.CreationTimestamp), nameOf(d.Config).compare(nameOf(e.Config)))
	})
	return out
}

// viewedWorkloads returns those of WorkloadEntries and of others, sorted.
func (c *Controller) viewedWorkloads(conversion *conversion, own []*configstore.Config) []*workload {
	c.foreignMu.Lock()
	out := slices.Collect(maps.Values(c.foreign))
	c.foreignMu.Unlock()
	for _, config := range own {
		if w := conversion.ownWorkload(config); w != nil {
			out = append(out, w)
		}
	}
	slices.SortFunc(out, (*workload).compare)
	return out
}

func (c *conversion) viewedEntry(d *definition, hosts []hostDefinition) *view.Entry {
	e := &view.Entry{
		Config: d.config, Resolution: d.resolution, Ports: d.ports, Selects: d.selects, Selector: d.selector,
		HostIsEndpoint: d.hostIsEndpoint,
		Self:           func(hostname registry.Hostname) []registry.Endpoint { return c.selfMember(nil, d, hostname).endpoints },
	}
	for _, h := range hosts {
		e.Hosts = append(e.Hosts, view.Host{Hostname: h.hostname, Services: h.services})
	}
	members := inlineMembers{conversion: c, definition: d}
	for i, spec := range d.inline() {
		var endpoints []registry.Endpoint
		if spec != nil {
			endpoints = members.convert(i, spec, nil).endpoints
		}
		e.Inline = append(e.Inline, endpoints)
	}
	return e
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
	out := view.Shown{
		Services: s.services.List(), Usual: addressText,
		Instances: func(address string) []registry.ServiceInstance { return s.instancesAt(address, "", nil) },
	}
	s.tables.hosts.Entries(func(e *pmap.Entry[hostKey, *host]) bool {
		if h := s.host(e.Key); h != nil {
			out.Hosts = append(out.Hosts, view.HostEndpoints{
				Namespace: e.Key.namespace, Hostname: e.Key.hostname, Endpoints: h.endpoints.Slice(),
			})
		}
		return true
	})
	seen := map[string]struct{}{}
	for address := range s.tables.addresses.addresses {
		seen[address] = struct{}{}
	}
	out.Addresses = slices.Sorted(maps.Keys(seen))
	return out
}
