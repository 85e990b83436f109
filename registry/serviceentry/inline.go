// SPDX-License-Identifier: Apache-2.0

package serviceentry

import (
	"maps"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/internal/limit"
	"github.com/pilotkit/pilotkit/registry"
)

// putInline replaces the endpoints that are written in an entry. An endpoint that
// does not differ from the one in its position is kept.
func (b *batch) putInline(e *entry, old *definition) {
	specs, formerSpecs := e.definition.inline(), []*networking.WorkloadEntry(nil)
	keep := old != nil && e.sameShape(old)
	if keep && !b.pending.everything {
		formerSpecs = old.inline()
	}
	contributions := inlineContributions{conversion: &b.conversion, entry: e, definition: e.definition}
	link, former := &e.inline, e.inline
	for i, spec := range specs {
		if i >= len(formerSpecs) || (spec == nil) != (formerSpecs[i] == nil) {
			// From here on former is not what formerSpecs says.
			formerSpecs = nil
		}
		if spec == nil {
			continue
		}
		if formerSpecs != nil && sameEndpoint(spec, formerSpecs[i]) {
			contributions.last(spec, former)
			*link = former
			link, former = &former.next, former.next
			continue
		}
		m := contributions.convert(i, spec, former)
		following := former.following()
		switch {
		case former == nil:
			b.addContribution(m, e.bindings...)
		case keep && m.position == former.position && m.equal(former):
			b.interner.release(m.attributes)
			m = former
		default:
			b.removeContribution(former, e.bindings...)
			b.addContribution(m, e.bindings...)
			former.next = nil
		}
		contributions.last(spec, m)
		*link = m
		link, former = &m.next, following
	}
	*link = nil
	for former != nil {
		b.removeContribution(former, e.bindings...)
		former, former.next = former.next, nil
	}
}

// inlineContributions converts the endpoints in an entry one after the other. Most of them differ
// from the previous one only in the address and therefore share its attributes.
type inlineContributions struct {
	conversion *conversion
	entry      *entry
	definition *definition
	// addresses has capacity for the addresses of the next endpoints.
	addresses []string
	// spec is the endpoint before, and shared its attributes; nil if unknown.
	spec   *networking.WorkloadEntry
	shared *interned
}

// addressBlock is for how many endpoints room is made at once. One of them that
// stays when the others are replaced keeps the whole room alive.
const addressBlock limit.Size = 8

// convert returns the contribution for an endpoint; former is the one that was at its
// position, or nil.
func (l *inlineContributions) convert(index int, spec *networking.WorkloadEntry, former *contribution) *contribution {
	d := l.definition
	if len(l.addresses) == 0 {
		l.addresses = make([]string, min(len(d.inline())-index, addressBlock.Get()))
	}
	t := inlineTemplate(d.config, index, spec, former.workloadName())
	m := newContribution(l.entry, len(d.ports))
	m.position = int32(index) //nolint:gosec // there are fewer endpoints than 2^31
	l.addresses[0] = t.address()
	m.attributes = l.attributes(&t)
	base := registry.Endpoint{
		Addresses: l.addresses[:1:1], WorkloadName: t.workloadName(), Shared: &m.attributes.EndpointAttributes,
	}
	l.addresses = l.addresses[1:]
	m.fill(d, &base, isUnix(spec.GetAddress()), spec.GetPorts())
	return m
}

func (l *inlineContributions) attributes(t *template) *interned {
	if l.shared != nil && sameAttributes(l.spec, t.spec) {
		return l.shared.again()
	}
	d := l.conversion.draft(t)
	return l.conversion.interner.acquire(&d)
}

// last records the result for an endpoint.
func (l *inlineContributions) last(spec *networking.WorkloadEntry, m *contribution) {
	l.spec, l.shared = spec, nil
	// NetworkOf may have another answer for another address.
	if l.conversion.options.NetworkOf == nil {
		l.shared = m.attributes
	}
}

// sameEndpoint reports whether two endpoints that are written in an entry are the
// same.
func sameEndpoint(s, t *networking.WorkloadEntry) bool {
	return s == t || s.GetAddress() == t.GetAddress() && maps.Equal(s.GetPorts(), t.GetPorts()) && sameAttributes(s, t)
}

// sameAttributes reports whether two endpoints that are written in an entry have
// the same attributes, unless those depend on the address.
func sameAttributes(s, t *networking.WorkloadEntry) bool {
	return s.GetNetwork() == t.GetNetwork() && s.GetLocality() == t.GetLocality() && s.GetWeight() == t.GetWeight() &&
		s.GetServiceAccount() == t.GetServiceAccount() && maps.Equal(s.GetLabels(), t.GetLabels())
}

// following returns the next contribution, nil for nil.
func (m *contribution) following() *contribution {
	if m == nil {
		return nil
	}
	return m.next
}
