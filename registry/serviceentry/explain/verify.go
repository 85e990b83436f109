// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/serviceentry"
	"github.com/pilotkit/pilotkit/registry/serviceentry/internal/view"
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

// Verify computes from the stores what a registry should show, and returns every
// difference from what it does; nil if there is none. Changes that are under way
// show as differences.
func Verify(c *serviceentry.Controller) []Difference {
	v := c.View()
	want, got := wanted(v), shown(&v.Shown)
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

// shown returns what readers see.
func shown(s *view.Shown) facts {
	out := facts{}
	for _, h := range s.Hosts {
		for _, e := range h.Endpoints {
			out.addEndpoint(hostKey{h.Namespace, h.Hostname}, e)
		}
	}
	for _, service := range s.Services {
		out.addService(service)
	}
	for _, a := range s.Addresses {
		for _, i := range s.Instances(a) {
			out.addInstance(a, i.Service, i.ServicePort, i.Endpoint)
		}
	}
	return out
}

// wanted returns what readers should see.
func wanted(v *view.View) facts {
	out := facts{}
	for _, e := range v.Entries {
		for _, h := range e.Hosts {
			for _, s := range h.Services {
				out.addService(s)
			}
		}
	}
	for k, list := range contributions(v) {
		sent := map[string]bool{}
		for i, c := range list {
			if c.dropped != "" {
				continue
			}
			if text := describeEndpoint(c.endpoint); !sent[text] {
				sent[text] = true
				out.addEndpoint(k, c.endpoint)
			}
			out.addInstances(c, list[i+1:], v.Shown.Usual)
		}
	}
	return out
}

// addInstances adds the instances that a contribution is at its addresses, unless
// a later one hides it there.
func (f facts) addInstances(c contribution, later []contribution, usual func(string) string) {
	for _, a := range addressTexts(c.endpoint, usual) {
		if hidden(c, later, a, usual) {
			continue
		}
		for _, s := range c.host.Services {
			f.addInstance(a, s, s.Ports[c.port], c.endpoint)
		}
	}
}

// hidden reports whether proxies at an address are not the instance c, because a
// later one of the entry cannot be distinguished from it.
func hidden(c contribution, later []contribution, address string, usual func(string) string) bool {
	return slices.ContainsFunc(later, func(l contribution) bool {
		e, f := c.endpoint, l.endpoint
		return l.dropped == "" && c.entry == l.entry && c.port == l.port &&
			slices.Contains(addressTexts(f, usual), address) && e.Address() == f.Address() &&
			e.WorkloadName == f.WorkloadName && e.Attributes().Namespace == f.Attributes().Namespace
	})
}

// addressTexts returns the addresses of an endpoint, each once and in one form.
func addressTexts(e *registry.Endpoint, usual func(string) string) []string {
	var out []string
	for _, a := range e.Addresses {
		if a = usual(a); !slices.Contains(out, a) {
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
