// SPDX-License-Identifier: Apache-2.0

package serviceentry

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pilotkit/pilotkit/internal/pmap"
	"github.com/pilotkit/pilotkit/registry"
)

// Difference is something that the registry shows although it should not, or the
// reverse.
type Difference struct {
	// Subject is what it is about: "service namespace/entry/host/address",
	// "endpoint of namespace/host" or "instance at address".
	Subject string
	// Value describes the service, the endpoint or the instance in full.
	Value string
	// Missing: the registry should show it, but does not. Else it shows it, but
	// should not.
	Missing bool
}

// String returns "missing subject: value" or "unexpected subject: value".
func (d Difference) String() string {
	if d.Missing {
		return "missing " + d.Subject + ": " + d.Value
	}
	return "unexpected " + d.Subject + ": " + d.Value
}

// Verify computes from the stores what the registry should show, and returns
// every difference from what it does; nil if there is none. It shares nothing with
// the way in which the registry keeps its state but the conversion of single
// objects, and costs as much as all of them together. Changes that are under way
// show as differences.
func (c *Controller) Verify() []Difference {
	want, got := c.newModel().facts(), c.facts()
	var out []Difference
	for _, f := range slices.SortedFunc(maps.Keys(want), fact.compare) {
		for range want[f] - got[f] {
			out = append(out, Difference{f.subject, f.value, true})
		}
	}
	for _, f := range slices.SortedFunc(maps.Keys(got), fact.compare) {
		for range got[f] - want[f] {
			out = append(out, Difference{f.subject, f.value, false})
		}
	}
	return out
}

// fact is something that a registry shows.
type fact struct{ subject, value string }

func (f fact) compare(g fact) int {
	if c := strings.Compare(f.subject, g.subject); c != 0 {
		return c
	}
	return strings.Compare(f.value, g.value)
}

// facts counts each fact.
type facts map[fact]int

func (f facts) add(subject, value string) { f[fact{subject, value}]++ }

func (f facts) addService(s *registry.Service) {
	f.add("service "+s.ResourceName(), describeService(s))
}

func (f facts) addEndpoint(k hostKey, e *registry.Endpoint) {
	f.add("endpoint of "+k.namespace+"/"+string(k.hostname), describeEndpoint(e))
}

func (f facts) addInstance(address string, s *registry.Service, port *registry.Port, e *registry.Endpoint) {
	f.add("instance at "+address, s.ResourceName()+" "+port.Name+" "+describeEndpoint(e))
}

// facts returns what readers see.
func (c *Controller) facts() facts {
	out := facts{}
	s := c.state.Load()
	s.tables.hosts.Entries(func(e *pmap.Entry[hostKey, *hostView]) bool {
		if view := s.host(e.Key); view != nil {
			for endpoint := range view.endpoints.All() {
				out.addEndpoint(e.Key, endpoint)
			}
		}
		return true
	})
	for _, service := range s.services.List() {
		out.addService(service)
	}
	s.tables.addresses.Entries(func(e *pmap.Entry[string, located]) bool {
		for _, i := range s.instancesAt(e.Key, "", nil) {
			out.addInstance(e.Key, i.Service, i.ServicePort, i.Endpoint)
		}
		return true
	})
	return out
}

// facts returns what readers should see.
func (m *model) facts() facts {
	out := facts{}
	for _, d := range m.entries {
		for i := range d.hosts {
			for _, s := range d.hosts[i].services {
				out.addService(s)
			}
		}
	}
	for k, contributions := range m.hosts() {
		sent := map[string]bool{}
		for _, c := range contributions {
			if text := describeEndpoint(c.endpoint); c.dropped == "" && !sent[text] {
				sent[text] = true
				out.addEndpoint(k, c.endpoint)
			}
		}
		for i, c := range contributions {
			if c.dropped != "" {
				continue
			}
			for _, a := range addressTexts(c.endpoint) {
				if hidden(c, contributions[i+1:], a) {
					continue
				}
				for _, s := range c.host.services {
					out.addInstance(a, s, s.Ports[c.port], c.endpoint)
				}
			}
		}
	}
	return out
}

// hidden reports whether proxies at an address are not the instance c, because a
// later one of the entry cannot be told from it.
func hidden(c contribution, later []contribution, address string) bool {
	return slices.ContainsFunc(later, func(l contribution) bool {
		e, f := c.endpoint, l.endpoint
		return l.dropped == "" && c.entry == l.entry && c.port == l.port &&
			slices.Contains(addressTexts(f), address) && e.Address() == f.Address() &&
			e.WorkloadName == f.WorkloadName && e.Attributes().Namespace == f.Attributes().Namespace
	})
}

// addressTexts returns the addresses of an endpoint, each once and in one form.
func addressTexts(e *registry.Endpoint) []string {
	var out []string
	for _, a := range e.Addresses {
		if a = addressText(a); !slices.Contains(out, a) {
			out = append(out, a)
		}
	}
	return out
}

func describeService(s *registry.Service) string {
	t := *s
	ports := make([]string, len(t.Ports))
	for i, p := range t.Ports {
		ports[i] = fmt.Sprintf("%s %d %s", p.Name, p.Number, p.Protocol)
	}
	// Neither of these is part of what a service is.
	t.Ports, t.ResourceVersion = nil, ""
	return strings.Join(ports, ", ") + fmt.Sprintf(" %+v", t)
}

func describeEndpoint(e *registry.Endpoint) string {
	f, a := *e, *e.Attributes()
	f.Shared = nil
	return fmt.Sprintf("%+v %+v", f, a)
}
