// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"iter"

	"github.com/pilotkit/pilotkit/internal/limit"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// Change says what differs between two states of a registry, in the words of those
// who learn of it: the updater and the handlers. The zero value says that nothing
// does. Within each list the order is the registry's, and is that of the calls.
type Change struct {
	// Configs are those that are committed with the change; nil: none are.
	Configs *xdsupdate.Update
	// Services are the definitions that changed, for SvcUpdate.
	Services []ServiceUpdate
	// Endpoints are the lists that changed, for EDSUpdate. Those of a service that is
	// gone go with it, and are not mentioned.
	Endpoints []EndpointUpdate
	// Pushes are for ConfigUpdate: one request for each reason, in the order of the
	// first of each. A push of everything is a request of its own.
	Pushes []Push
	// Proxies returns those for ProxyUpdate. It is called when the state is visible, before
	// Publish returns; nil: there are none.
	Proxies func() []Proxy

	// ServiceChanges, WorkloadChanges and Gateways are what handlers are notified of.
	ServiceChanges []ServiceChange
	// WorkloadChanges yields the former and the next state of each workload that
	// changed, as handlers see them: nil if they do not see it, which may be both. It is
	// ranged over only if there are handlers of workloads, with a lock held, before
	// Publish returns.
	WorkloadChanges iter.Seq2[*registry.WorkloadInstance, *registry.WorkloadInstance]
	// Gateways: the gateways of networks changed.
	Gateways bool
}

// ServiceUpdate has the arguments of SvcUpdate.
type ServiceUpdate struct {
	Hostname  registry.Hostname
	Namespace string
	Event     registry.Event
}

// EndpointUpdate has the next list of a service's endpoints.
type EndpointUpdate struct {
	Hostname  registry.Hostname
	Namespace string
	Endpoints Endpoints
	// Changes lead to it from the list that the updater knows. Without any, the
	// updater gets the complete list.
	Changes []xdsupdate.EndpointChange
}

// Push is a push that is to be asked for.
type Push struct {
	Reason xdsupdate.TriggerReason
	// Key is what it is about; the zero key is everything, for all proxies.
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

// maxSpare is how much room, in elements, is kept for the next batch. What a large
// one needed is not.
const maxSpare limit.Size = 256

// Reset makes the change empty, but for the functions, which stay. Lists keep their
// room, unless there is much of it.
func (c *Change) Reset() {
	*c = Change{
		Services: Emptied(c.Services), Endpoints: Emptied(c.Endpoints), Pushes: Emptied(c.Pushes), Proxies: c.Proxies,
		ServiceChanges: Emptied(c.ServiceChanges), WorkloadChanges: c.WorkloadChanges,
	}
}

// Emptied returns a list without elements that has the room of a given one, for the
// next batch of a registry; no room if there is much of it.
func Emptied[T any](list []T) []T {
	if cap(list) > maxSpare.Get() {
		return nil
	}
	clear(list)
	return list[:0]
}
