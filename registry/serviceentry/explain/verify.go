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

// Difference is an object that the registry shows unexpectedly, or does not show although it
// should.
type Difference struct {
	// Subject is "service namespace/entry/host/address", "endpoint of namespace/host" or "instance
	// at address".
	Subject string
	// Value describes the service, the endpoint or the instance in full.
	Value string
	// Missing is true if the registry does not show an expected object, and false if it shows an
	// unexpected one.
	Missing bool
}

// String returns "missing subject: value" or "unexpected subject: value".
func (d Difference) String() string {
	if d.Missing {
		return "missing " + d.Subject + ": " + d.Value
	}
	return "unexpected " + d.Subject + ": " + d.Value
}

// Verify recomputes the registry from the present objects and returns every difference from its
// state, or nil. Concurrent changes may appear as differences.
func Verify(c *serviceentry.Controller) []Difference {
	v := c.View()
	want, got := shown(&v.Wanted), shown(&v.Shown)
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

// shown returns what readers see.
func shown(s *view.Shown) facts {
	out := facts{}
	for _, h := range s.Hosts {
		for _, e := range h.Endpoints {
			out.add("endpoint of "+h.Namespace+"/"+string(h.Hostname), describeEndpoint(e))
		}
	}
	for _, service := range s.Services {
		out.add("service "+service.ResourceName(), describeService(service))
	}
	for address, instances := range s.Instances {
		for _, i := range instances {
			out.add("instance at "+address, i.Service.ResourceName()+" "+i.ServicePort.Name+" "+describeEndpoint(i.Endpoint))
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
	// The ports are already in the text, and the version is not part of the definition.
	t.Ports, t.ResourceVersion = nil, ""
	return strings.Join(ports, ", ") + fmt.Sprintf(" %+v", t)
}

func describeEndpoint(e *registry.Endpoint) string {
	f, a := *e, *e.Attributes()
	f.Shared = nil
	return fmt.Sprintf("%+v %+v", f, a)
}
