// SPDX-License-Identifier: Apache-2.0

package aggregate

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/pilotkit/pilotkit/internal/excerpt"
	"github.com/pilotkit/pilotkit/registry"
)

// Conflict is a host name with several definitions: in registries of different providers, such as a
// Kubernetes Service and a ServiceEntry, or in several namespaces. It is not an error. Proxies use
// the definition in their own namespace if there is one, and otherwise the oldest definition that
// is visible to them. They get the endpoints of all providers in the namespace of the definition.
// Nevertheless, a conflict is usually a mistake.
type Conflict struct {
	Hostname registry.Hostname
	// Services are all services with the host name, in the order of the aggregate. GetService
	// returns the first one. They are shared and read-only.
	Services []*registry.Service
}

// String returns the host name and the places of its definitions.
func (c Conflict) String() string {
	var places []string
	for _, s := range c.Services {
		a := s.Attributes
		places = append(places, excerpt.Object(string(a.Provider), a.Namespace, cmp.Or(a.ObjectName, a.Name)))
	}
	return fmt.Sprintf("%s: defined by %s", c.Hostname, strings.Join(places, " and "))
}

// Conflicts returns the host names with several definitions, sorted, or nil. Services of several
// Kubernetes clusters with the same provider and namespace do not conflict, nor do the services for
// the addresses of one ServiceEntry. Conflicts scans all services, so use it for reports only.
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
