// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"iter"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// world is the services and endpoints of one moment, whoever may see them.
type world interface {
	// hosts yields the services by host name in lower case, each list sorted by
	// ComparePrecedence, in any order of names.
	hosts() iter.Seq2[registry.Hostname, []*registry.Service]
	// named returns the services of a host name, compared without case, sorted by
	// ComparePrecedence.
	named(host registry.Hostname) []*registry.Service
	// aliases returns the names in lower case of the services that are other names for a
	// host name in lower case, sorted.
	aliases(host registry.Hostname) []registry.Hostname
	// endpoints returns the endpoints of a service over all shards; nil for none.
	endpoints(host registry.Hostname, namespace string) *xdsupdate.ServiceEndpoints
}
