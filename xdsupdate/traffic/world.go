// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"iter"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// world contains the services and endpoints of one snapshot, regardless of visibility.
type world interface {
	// hosts yields the services by host name in lower case, in unspecified order of names. Each
	// list is sorted by ComparePrecedence.
	hosts() iter.Seq2[registry.Hostname, []*registry.Service]
	// named returns the services with a host name, sorted by ComparePrecedence. Names are
	// case-insensitive.
	named(host registry.Hostname) []*registry.Service
	// aliases returns the names of the aliases of a host, sorted. All names are in lower case.
	aliases(host registry.Hostname) []registry.Hostname
	// endpoints returns the endpoints of a service in all shards, or nil.
	endpoints(host registry.Hostname, namespace string) *xdsupdate.ServiceEndpoints
}
