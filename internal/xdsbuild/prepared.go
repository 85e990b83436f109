// SPDX-License-Identifier: Apache-2.0

package xdsbuild

import (
	"net/netip"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// Prepared is the endpoints of one port of a service, ready to be encoded as a load assignment.
// When some of the endpoints change, the next Prepared reuses the encodings of the others: the
// encoding of a large assignment is concatenated from encoded endpoints. It is immutable.
type Prepared struct {
	port  *registry.Port
	parts []*part // sorted by CompareEndpoints
	// simple is set if all parts are simple.
	simple bool
}

// part is one endpoint, independent of the client.
type part struct {
	endpoint *registry.Endpoint
	// encoded is the encoded LbEndpoint, nil if it is not sent to any client.
	encoded  []byte
	locality localityKey
	weight   uint32
	unix     bool
	// simple is set if the only address is an IP address in canonical form. Endpoints with the same
	// simple address are neighbors in the order.
	simple bool
}

// Prepare returns the endpoints that serve a port. They may be in any order; endpoints sorted by
// registry.CompareEndpoints cost less. Before, which may be nil, is an earlier state of the same
// port, whose work is reused for the endpoints that are still there, compared by pointer.
func Prepare(port *registry.Port, endpoints []*registry.Endpoint, before *Prepared) *Prepared {
	out := &Prepared{port: port, parts: make([]*part, 0, len(endpoints)), simple: true}
	var old []*part
	if before != nil {
		old = before.parts
	}
	var last *registry.Endpoint
	for _, e := range endpoints {
		if !Serves(e, port) {
			continue
		}
		if last != nil && (len(old) == 0 || old[0].endpoint != e) && registry.CompareEndpoints(last, e) > 0 {
			return Prepare(port, slices.SortedStableFunc(slices.Values(endpoints), registry.CompareEndpoints), before)
		}
		for len(old) > 0 && old[0].endpoint != e && registry.CompareEndpoints(old[0].endpoint, e) < 0 {
			old = old[1:]
		}
		var p *part
		if len(old) > 0 && old[0].endpoint == e {
			p, old = old[0], old[1:]
		} else {
			p = newPart(e)
		}
		out.parts = append(out.parts, p)
		out.simple = out.simple && p.simple
		last = e
	}
	return out
}

func newPart(e *registry.Endpoint) *part {
	p := &part{
		endpoint: e, unix: IsUnix(e), weight: max(1, e.Attributes().LbWeight),
		locality: keyOfLocality(e.Attributes().Locality), simple: true,
	}
	if !sent(e) {
		return p
	}
	addr, err := netip.ParseAddr(e.Address())
	p.simple = len(e.Addresses) == 1 && err == nil && addr.Unmap().String() == e.Address()
	if p.simple && addr.Zone() == "" && e.EndpointPort > 0 && e.EndpointPort <= maxPort {
		p.encoded = encodeWithIP(e)
		return p
	}
	p.encoded = encodeLbEndpoint(e)
	p.simple = p.simple || p.encoded == nil
	return p
}

// encodeLbEndpoint returns an encoded LbEndpoint, nil if it is not sent to any client.
func encodeLbEndpoint(e *registry.Endpoint) []byte {
	lb := lbEndpoint(e, false, e.Attributes().TLSMode)
	if lb == nil {
		return nil
	}
	encoded, err := proto.MarshalOptions{Deterministic: true}.Marshal(lb)
	if err != nil {
		return nil // text that is not UTF-8, which lbEndpoint leaves out
	}
	return encoded
}

// choose returns the parts to send to a client, without duplicate addresses: of several endpoints
// with one address it chooses the healthiest.
func (p *Prepared) choose(visible func(*registry.Endpoint) bool, client envoy.Client) []*part {
	out := make([]*part, 0, len(p.parts))
	for _, q := range p.parts {
		if q.encoded != nil && (client != envoy.ForGRPC || !q.unix) && (visible == nil || visible(q.endpoint)) {
			out = append(out, q)
		}
	}
	if p.simple {
		return dedupeSimple(out)
	}
	return dedupe(out, func(q *part) *registry.Endpoint { return q.endpoint }, false)
}

// dedupeSimple is dedupe for simple parts: only neighbors with the same text can have the same
// address.
func dedupeSimple(parts []*part) []*part {
	out := parts[:0]
	for i := 0; i < len(parts); {
		n := i + 1
		for n < len(parts) && parts[n].endpoint.Address() == parts[i].endpoint.Address() {
			n++
		}
		if n == i+1 {
			out = append(out, parts[i])
		} else {
			run := slices.Clone(parts[i:n])
			out = append(out, dedupe(run, func(q *part) *registry.Endpoint { return q.endpoint }, false)...)
		}
		i = n
	}
	return out
}

// dedupe keeps one endpoint of each address: the healthiest, then the first. It preserves the
// order.
func dedupe[T any](list []T, endpoint func(T) *registry.Endpoint, names bool) []T {
	taken := make(map[string]struct{}, len(list))
	keep := make([]bool, len(list))
	for level := range 3 {
		for i, x := range list {
			if e := endpoint(x); preference(e) == level {
				keep[i] = claim(taken, e, names)
			}
		}
	}
	out := list[:0]
	for i, x := range list {
		if keep[i] {
			out = append(out, x)
		}
	}
	return out
}
