// SPDX-License-Identifier: Apache-2.0

package serviceentry

import (
	"slices"

	"github.com/pilotkit/pilotkit/registry"
)

// member is the endpoints that one workload contributes to an entry: one for each
// port. All but the links and the position is immutable.
type member struct {
	entry     *entry
	endpoints []registry.Endpoint
	// workload is the one that the entry selected. If it is nil the member has
	// attributes of its own, which all its endpoints share.
	workload   *workload
	attributes *interned
	// self: the host itself is the endpoint, so that the member belongs to the
	// binding of that host only.
	self bool
	// position is the place among the members that the entry selected; of a member
	// that is written in the entry it is the place there, which does not change.
	position int32
	// next is another member of the workload, or the next one that is written in
	// the entry.
	next *member
}

// newMember returns a member with room for its endpoints, in one piece for the
// usual numbers of ports.
func newMember(e *entry, ports int) *member {
	var m *member
	switch ports {
	case 1:
		p := &struct {
			member
			endpoints [1]registry.Endpoint
		}{}
		m, p.member.endpoints = &p.member, p.endpoints[:]
	case 2:
		p := &struct {
			member
			endpoints [2]registry.Endpoint
		}{}
		m, p.member.endpoints = &p.member, p.endpoints[:]
	case 3:
		p := &struct {
			member
			endpoints [3]registry.Endpoint
		}{}
		m, p.member.endpoints = &p.member, p.endpoints[:]
	default:
		m = &member{endpoints: make([]registry.Endpoint, ports)}
	}
	m.entry = e
	return m
}

// fill makes the endpoints of a member: base, which has no port, for each port of
// the entry.
func (m *member) fill(d *definition, base *registry.Endpoint, unix bool, portMap map[string]uint32) {
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

// selfMember returns the member for a host that is its own endpoint.
func (c *conversion) selfMember(e *entry, d *definition, hostname registry.Hostname) *member {
	m := newMember(e, len(d.ports))
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

// selectedMember returns the member for a workload that an entry selects.
func selectedMember(e *entry, d *definition, w *workload) *member {
	m := newMember(e, len(d.ports))
	m.workload = w
	base := w.endpoint()
	m.fill(d, &base, w.unix, w.ports())
	return m
}

// mayServe reports whether the address of a workload is one that an endpoint of the
// entry may have.
func (d *definition) mayServe(w *workload) bool { return !w.dnsOnly || d.resolution.IsDNS() }

func (m *member) workloadName() string {
	if m == nil || len(m.endpoints) == 0 {
		return ""
	}
	return m.endpoints[0].WorkloadName
}

// equal reports whether the endpoints are equal.
func (m *member) equal(n *member) bool {
	return slices.EqualFunc(m.endpoints, n.endpoints, func(e, f registry.Endpoint) bool { return e.Equal(&f) })
}

// addresses returns those of the member, none if it has no endpoints.
func (m *member) addresses() []string {
	if len(m.endpoints) == 0 {
		return nil
	}
	return m.endpoints[0].Addresses
}
