// SPDX-License-Identifier: Apache-2.0

package serviceentry

import (
	"cmp"
	"slices"

	"github.com/pilotkit/pilotkit/registry"
)

// contribution is the endpoints that one workload contributes to an entry: one for each
// port. All but the links and the position is immutable.
type contribution struct {
	entry     *entry
	endpoints []registry.Endpoint
	// workload is the one that the entry selected. If it is nil the contribution has
	// attributes of its own, which all its endpoints share.
	workload   *workload
	attributes *interned
	// self: the host itself is the endpoint, so that the contribution belongs to the
	// binding of that host only.
	self bool
	// position is the place among the contributions that the entry selected; of a contribution
	// that is written in the entry it is the place there, which does not change.
	position int32
	// next is another contribution of the workload, or the next one that is written in
	// the entry.
	next *contribution
}

// newContribution returns a contribution with room for its endpoints, in one piece for the
// usual numbers of ports.
func newContribution(e *entry, ports int) *contribution {
	var m *contribution
	switch ports {
	case 1:
		m = contributionWith(func(a *[1]registry.Endpoint) []registry.Endpoint { return a[:] })
	case 2:
		m = contributionWith(func(a *[2]registry.Endpoint) []registry.Endpoint { return a[:] })
	case 3:
		m = contributionWith(func(a *[3]registry.Endpoint) []registry.Endpoint { return a[:] })
	default:
		m = &contribution{endpoints: make([]registry.Endpoint, ports)}
	}
	m.entry = e
	return m
}

// contributionWith returns a contribution whose endpoints are in an array behind it.
func contributionWith[A any](all func(*A) []registry.Endpoint) *contribution {
	p := &struct {
		contribution
		room A
	}{}
	p.endpoints = all(&p.room)
	return &p.contribution
}

// fill makes the endpoints of a contribution: base, which has no port, for each port of
// the entry.
func (m *contribution) fill(d *definition, base *registry.Endpoint, unix bool, portMap map[string]uint32) {
	for i, p := range d.ports {
		e := &m.endpoints[i]
		*e = *base
		e.ServicePort, e.ServicePortName = p.Number, p.Name
		e.EndpointPort = d.endpointPort(i, unix, portMap)
	}
}

// endpointPort returns the port to connect to: none for a unix socket, else the
// workload's port of that name, else the target port, else the service port.
func (d *definition) endpointPort(i int, unix bool, portMap map[string]uint32) uint32 {
	if unix {
		return 0
	}
	if number := portMap[d.ports[i].Name]; number > 0 {
		return number
	}
	if d.targets != nil && d.targets[i] > 0 {
		return d.targets[i]
	}
	return d.ports[i].Number
}

// selfContribution returns the contribution for a host that is its own endpoint.
func (c *conversion) selfContribution(e *entry, d *definition, hostname registry.Hostname) *contribution {
	m := newContribution(e, len(d.ports))
	m.self = true
	a := draft{EndpointAttributes: registry.EndpointAttributes{
		ClusterID: c.options.ClusterID, TLSMode: tlsModeDisabled, Namespace: d.config.Namespace,
	}}
	m.attributes = c.interner.acquire(&a)
	base := registry.Endpoint{
		Addresses: []string{string(hostname)}, WorkloadName: d.config.Name, Shared: &m.attributes.EndpointAttributes,
	}
	m.fill(d, &base, false, nil)
	return m
}

// selectedContribution returns the contribution for a workload that an entry selects. As in Istio
// 1.30, its endpoints get the name of the object if the workload has an empty name.
func selectedContribution(e *entry, d *definition, w *workload) *contribution {
	m := newContribution(e, len(d.ports))
	m.workload = w
	base := w.endpoint()
	base.WorkloadName = cmp.Or(base.WorkloadName, w.key().Name)
	m.fill(d, &base, w.unix, w.ports())
	return m
}

// mayServe reports whether the address of a workload is one that an endpoint of the
// entry may have.
func (d *definition) mayServe(w *workload) bool { return !w.dnsOnly || d.resolution.IsDNS() }

func (m *contribution) workloadName() string {
	if m == nil || len(m.endpoints) == 0 {
		return ""
	}
	return m.endpoints[0].WorkloadName
}

// equal reports whether the endpoints are equal.
func (m *contribution) equal(n *contribution) bool {
	return slices.EqualFunc(m.endpoints, n.endpoints, func(e, f registry.Endpoint) bool { return e.Equal(&f) })
}

// addresses returns the addresses of the endpoints, or nil without endpoints.
func (m *contribution) addresses() []string {
	if len(m.endpoints) == 0 {
		return nil
	}
	return m.endpoints[0].Addresses
}
