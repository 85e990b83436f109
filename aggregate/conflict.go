// SPDX-License-Identifier: Apache-2.0

package aggregate

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/pilotkit/pilotkit/registry"
)

// Conflict is a host name that is defined more than once: by registries of several
// providers, such as a Kubernetes Service and a ServiceEntry, or in several
// namespaces. It is no error: proxies of a namespace that has a definition of its own
// use that one, and clients are sent the endpoints of all providers in it; all others
// use the oldest that they see. But mostly it is not what was meant.
type Conflict struct {
	Hostname registry.Hostname
	// Services are all that have the name, in the order of the aggregate: the first is
	// what GetService answers. They are shared and read-only.
	Services []*registry.Service
}

// String returns the host name and where it is defined.
func (c Conflict) String() string {
	var places []string
	for _, s := range c.Services {
		a := s.Attributes
		places = append(places, fmt.Sprintf("%s %s/%s", a.Provider, a.Namespace, cmp.Or(a.ObjectName, a.Name)))
	}
	return fmt.Sprintf("%s: defined by %s", c.Hostname, strings.Join(places, " and "))
}

// Conflicts returns the host names that are defined more than once, sorted; nil if
// there are none. The clusters of Kubernetes registries that have one service, and
// the addresses of one ServiceEntry, do not conflict. It looks at all services: it is
// for reports.
func (c *Controller) Conflicts() []Conflict {
	var out []Conflict
	set := c.current().services
	var last registry.Hostname
	for _, s := range set.List() {
		if s.Hostname == last {
			continue
		}
		last = s.Hostname
		if services := set.Host(last); conflict(services) {
			out = append(out, Conflict{last, services})
		}
	}
	return out
}

func conflict(services []*registry.Service) bool {
	for _, s := range services[1:] {
		first := services[0].Attributes
		if s.Attributes.Provider != first.Provider || s.Attributes.Namespace != first.Namespace {
			return true
		}
	}
	return false
}
