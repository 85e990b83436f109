// SPDX-License-Identifier: Apache-2.0

package serviceentry

import (
	"maps"
	"slices"
	"strings"

	"go.uber.org/atomic"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/registry"
)

// workload is a WorkloadEntry or a workload of another registry that entries may select. It is
// immutable except for the links. Derived data is not stored, because there may be very many
// workloads.
type workload struct {
	// config is the WorkloadEntry, or nil if another registry announced the workload. An equivalent
	// WorkloadEntry replaces it, so that the former object can be freed.
	config atomic.Pointer[configstore.Config]
	// instance is what another registry announced; nil for a WorkloadEntry.
	instance   *registry.WorkloadInstance
	attributes *interned
	// addressOfConfig is the address in a WorkloadEntry without its scheme.
	addressOfConfig [1]string
	// unix: the address is a unix socket.
	unix bool
	// dnsOnly: the address is not an IP address, so that only entries with
	// resolution DNS or DNS_ROUND_ROBIN may select the workload.
	dnsOnly bool

	// instanceForHandlers is the instance for handlers, or nil before the first use.
	instanceForHandlers *registry.WorkloadInstance

	group *group
	// position is the place in the group.
	position int32
	// first is the head of the list of contributions, one for each entry that selects
	// the workload.
	first *contribution
}

// ownWorkload returns the workload of a WorkloadEntry, or nil if the entry does
// not count because it is not healthy.
func (c *conversion) ownWorkload(config *configstore.Config) *workload {
	t, ok := workloadTemplate(config)
	if !ok || (!c.options.IgnoreHealth && !healthy(config)) {
		return nil
	}
	d := c.draft(&t)
	address := t.spec.GetAddress()
	w := &workload{
		attributes: c.interner.acquire(&d), addressOfConfig: [1]string{t.address()},
		unix: isUnix(address), dnsOnly: address != "" && !isIP(address),
	}
	w.config.Store(config)
	return w
}

// foreignWorkload returns the workload for an instance of another registry. As in Istio 1.30, its
// endpoints get the namespace of the instance if they have none.
func (c *conversion) foreignWorkload(instance *registry.WorkloadInstance) *workload {
	d := draft{EndpointAttributes: *instance.Endpoint.Attributes()}
	d.metadata, d.Labels = d.Labels, nil
	if d.Namespace == "" {
		d.Namespace = instance.Namespace
	}
	return &workload{
		instance: instance, attributes: c.interner.acquire(&d),
		unix: isUnix(instance.Endpoint.Address()), dnsOnly: instance.DNSServiceEntryOnly,
	}
}

// sameAs reports whether two states of a WorkloadEntry are equivalent. Both must use the same
// interner.
func (w *workload) sameAs(x *workload) bool {
	return w.attributes == x.attributes && w.addressOfConfig == x.addressOfConfig && w.unix == x.unix &&
		w.workloadName() == x.workloadName() && maps.Equal(w.ports(), x.ports())
}

// foreign reports whether another registry announced the workload.
func (w *workload) foreign() bool { return w.instance != nil }

// isPod reports whether a change of the instances of the workload causes a
// ProxyUpdate.
func (w *workload) isPod() bool { return w.foreign() && w.instance.Kind == registry.Pod }

func (w *workload) key() registry.WorkloadKey {
	if w.foreign() {
		return w.instance.Key()
	}
	config := w.config.Load()
	return registry.WorkloadKey{
		Cluster: w.attributes.ClusterID, Kind: registry.WorkloadEntry, Namespace: config.Namespace, Name: config.Name,
	}
}

func (w *workload) namespace() string {
	if w.foreign() {
		return w.instance.Namespace
	}
	return w.config.Load().Namespace
}

// compare orders workloads by their keys. Nil, for an endpoint
// that is written in an entry, is last.
func (w *workload) compare(x *workload) int {
	switch {
	case w == x:
		return 0
	case w == nil:
		return 1
	case x == nil:
		return -1
	}
	return w.key().Compare(x.key())
}

// addresses returns the addresses of the workload's endpoints.
func (w *workload) addresses() []string {
	switch {
	case !w.foreign():
		return w.addressOfConfig[:]
	case w.unix:
		out := slices.Clone(w.instance.Endpoint.Addresses)
		out[0] = strings.TrimPrefix(out[0], unixScheme)
		return out
	default:
		return w.instance.Endpoint.Addresses
	}
}

// address returns the first address, or "".
func (w *workload) address() string {
	if a := w.addresses(); len(a) > 0 {
		return a[0]
	}
	return ""
}

// ports returns the workload's ports by service port name.
func (w *workload) ports() map[string]uint32 {
	if w.foreign() {
		return w.instance.PortMap
	}
	t, _ := workloadTemplate(w.config.Load())
	return t.spec.GetPorts()
}

func (w *workload) workloadName() string {
	if w.foreign() {
		return w.instance.Endpoint.WorkloadName
	}
	t, _ := workloadTemplate(w.config.Load())
	return t.workloadName()
}

// endpoint returns the workload's endpoint without a port.
func (w *workload) endpoint() registry.Endpoint {
	var e registry.Endpoint
	if w.foreign() {
		e = *w.instance.Endpoint
	}
	e.Addresses, e.WorkloadName, e.Shared = w.addresses(), w.workloadName(), &w.attributes.EndpointAttributes
	return e
}

// announced returns the instance for workload handlers. It is nil for a workload of another
// registry, so that two registries with handlers for each other do not send a workload back and
// forth, and, as in Istio 1.30, for a workload without an IP address. It is built at the first
// call.
func (w *workload) announced() *registry.WorkloadInstance {
	if w == nil || w.foreign() || w.dnsOnly {
		return nil
	}
	if w.instanceForHandlers == nil {
		k := w.key()
		e := w.endpoint()
		w.instanceForHandlers = &registry.WorkloadInstance{
			Cluster: k.Cluster, Kind: k.Kind, Namespace: k.Namespace, Name: k.Name, Endpoint: &e, PortMap: w.ports(),
		}
	}
	return w.instanceForHandlers
}
