// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"iter"

	"github.com/pilotkit/pilotkit/internal/limit"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// Change is the difference between two states of a registry, for the updater and the handlers. The
// zero value is no difference. Each list is in the order of the registry, which is the order of the
// calls.
type Change struct {
	// Configs are configs that are committed in the same update, or nil.
	Configs *xdsupdate.Update
	// Services are the changed definitions, for SvcUpdate.
	Services []ServiceUpdate
	// Endpoints are the changed lists, for EDSUpdate. A deleted service has no entry, because
	// SvcUpdate removes its endpoints.
	Endpoints []EndpointUpdate
	// Pushes are the push requests, for ConfigUpdate. They become one request for each reason, in
	// the order of first use. A push of everything is a separate request.
	Pushes []Push
	// Proxies returns the proxies for ProxyUpdate. It is called when the state is visible, with a
	// lock held, before Publish or Commit returns. It may be nil.
	Proxies func() []Proxy

	// ServiceChanges, WorkloadChanges and Gateways are the changes for handlers.
	ServiceChanges []ServiceChange
	// WorkloadChanges yields the former and the next state of each changed workload. Either one is
	// nil, or both are, if it is not visible to handlers. WorkloadChanges is iterated with a lock
	// held, before Publish returns, and only if there are handlers of workloads.
	WorkloadChanges iter.Seq2[*registry.WorkloadInstance, *registry.WorkloadInstance]
	// Gateways is true if the network gateways have changed.
	Gateways bool
}

// ServiceUpdate has the arguments of SvcUpdate.
type ServiceUpdate struct {
	Hostname  registry.Hostname
	Namespace string
	Event     registry.Event
}

// EndpointUpdate is the next list of a service's endpoints.
type EndpointUpdate struct {
	Hostname  registry.Hostname
	Namespace string
	Endpoints Endpoints
	// Changes lead to Endpoints from the list that the updater knows. Without Changes, the updater
	// gets the complete list.
	Changes []xdsupdate.EndpointChange
}

// Push is a push request.
type Push struct {
	Reason xdsupdate.TriggerReason
	// Key is the changed config. The zero key requests a push of everything to all proxies.
	Key xdsupdate.ConfigKey
}

// Proxy has the arguments of ProxyUpdate.
type Proxy struct {
	Cluster registry.ClusterID
	IP      string
}

// ServiceChange has the arguments of a registry.ServiceHandler.
type ServiceChange struct {
	Prev, Curr *registry.Service
	Event      registry.Event
}

// maxSpare is the maximum capacity, in elements, that is kept for the next batch.
const maxSpare limit.Size = 256

// Reset empties the change, except for the functions Proxies and WorkloadChanges. Small lists keep
// their capacity.
func (c *Change) Reset() {
	*c = Change{
		Services: Emptied(c.Services), Endpoints: Emptied(c.Endpoints), Pushes: Emptied(c.Pushes), Proxies: c.Proxies,
		ServiceChanges: Emptied(c.ServiceChanges), WorkloadChanges: c.WorkloadChanges,
	}
}

// Emptied returns a list without elements for the next batch of a registry. It keeps the capacity
// of the list, unless that is large.
func Emptied[T any](list []T) []T {
	if cap(list) > maxSpare.Get() {
		return nil
	}
	clear(list)
	return list[:0]
}
