// SPDX-License-Identifier: Apache-2.0

package xdsbuild

import (
	"cmp"
	"math"
	"slices"
	"strings"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/pilotkit/pilotkit/internal/topo"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// LoadAssignment returns the endpoints of a port of a service for EDS. It omits endpoints of other
// ports, endpoints that must not be sent to clients, and endpoints without an IP address or unix
// socket. Without any endpoint the assignment is empty, which tells a client that the service has
// no endpoints. The result is nil for a host or port that cannot be part of a resource name.
//
// Endpoints are grouped by locality, all at priority 0; the weight of a locality is the sum of the
// weights in it. Of several endpoints with the same address only the healthiest is kept, because
// gRPC clients reject an assignment with duplicate addresses. gRPC clients also reject weights
// whose sum exceeds 32 bits; such weights are scaled down by a common factor.
func LoadAssignment(
	svc *registry.Service, port *registry.Port, endpoints []*registry.Endpoint, client envoy.Client,
) *endpointv3.ClusterLoadAssignment {
	if !usable(svc.Hostname, port) {
		return nil
	}
	u := Upstream{Service: svc, Port: port, Endpoints: endpoints, Client: client}
	return u.assignment()
}

// LoadAssignment is like the function LoadAssignment, but for the subset and under the policy. The
// policy may set priorities of endpoints and weights of localities. Endpoints in other networks are
// replaced by gateways. The result is nil if the cluster's name would be invalid.
func (u *Upstream) LoadAssignment() *endpointv3.ClusterLoadAssignment {
	if !usable(u.Service.Hostname, u.Port) || !usableSubset(u.Subset) {
		return nil
	}
	return u.assignment()
}

// Plain reports whether the upstream's load assignment equals that of the function LoadAssignment
// for the endpoints that are visible to the proxy's cluster. Then it also equals that of Prepared.
func (u *Upstream) Plain() bool {
	if u.Subset != "" || u.AutoPassthrough || u.plaintext() || u.Plaintext != nil || u.Networks != nil && len(u.Networks.gateways) > 0 {
		return false
	}
	setting := u.locality()
	return !setting.failover && len(setting.distribute) == 0
}

func (u *Upstream) assignment() *endpointv3.ClusterLoadAssignment {
	return &endpointv3.ClusterLoadAssignment{ClusterName: u.name(), Endpoints: u.localities(u.choose(false), false)}
}

// Encode returns the encoding of LoadAssignment's result for the visible endpoints. A nil visible
// means all endpoints. Encode returns nil if LoadAssignment does.
func (p *Prepared) Encode(host registry.Hostname, visible func(*registry.Endpoint) bool, client envoy.Client) []byte {
	if !usable(host, p.port) {
		return nil
	}
	chosen := p.choose(visible, client)
	groups := groupParts(chosen)
	name := envoy.ClusterName(p.port.Number, host)
	size, total := len(name)+8, uint64(0)
	for i := range groups {
		size += groups[i].size()
		total += groups[i].weight
	}
	if total > math.MaxUint32 {
		return p.encodeScaled(name, chosen)
	}
	out := make([]byte, 0, size)
	out = protowire.AppendTag(out, 1, protowire.BytesType) // cluster_name
	out = protowire.AppendString(out, name)
	for i := range groups {
		out = protowire.AppendTag(out, 2, protowire.BytesType) // endpoints
		out = protowire.AppendVarint(out, uint64(groups[i].encodedSize()))
		out = groups[i].append(out)
	}
	return out
}

// encodeScaled encodes an assignment whose weights have to be scaled down.
func (p *Prepared) encodeScaled(name string, chosen []*part) []byte {
	endpoints := make([]*registry.Endpoint, len(chosen))
	for i, q := range chosen {
		endpoints[i] = q.endpoint
	}
	var plain Upstream
	return packed(&endpointv3.ClusterLoadAssignment{
		ClusterName: name, Endpoints: assemble(plain.entries(endpoints, false)),
	}).GetValue()
}

// localityKey is a locality.
type localityKey struct{ region, zone, subZone string }

func keyOfLocality(s string) localityKey {
	region, zone, subZone := topo.Split(strings.ToValidUTF8(s, ""))
	return localityKey{region, zone, subZone}
}

func (k localityKey) compare(l localityKey) int {
	return cmp.Or(
		strings.Compare(k.region, l.region), strings.Compare(k.zone, l.zone), strings.Compare(k.subZone, l.subZone))
}

// partGroup is the parts of one locality.
type partGroup struct {
	locality localityKey
	parts    []*part
	weight   uint64
	bytes    int // size of the encoded parts, with tags and lengths
}

// groupParts groups parts by locality, sorted.
func groupParts(parts []*part) []partGroup {
	var groups []partGroup
	positions := make(map[localityKey]int)
	for i := 0; i < len(parts); {
		n := i + 1
		for n < len(parts) && parts[n].locality == parts[i].locality {
			n++
		}
		at, found := positions[parts[i].locality]
		if !found {
			at = len(groups)
			positions[parts[i].locality] = at
			groups = append(groups, partGroup{locality: parts[i].locality})
		}
		groups[at].add(parts[i:n:n])
		i = n
	}
	slices.SortFunc(groups, func(a, b partGroup) int { return a.locality.compare(b.locality) })
	return groups
}

// add adds parts. If they are the first ones, it keeps the slice.
func (g *partGroup) add(parts []*part) {
	if len(g.parts) == 0 {
		g.parts = parts
	} else {
		g.parts = append(g.parts, parts...)
	}
	for _, p := range parts {
		g.weight += uint64(p.weight)
		g.bytes += 1 + protowire.SizeBytes(len(p.encoded))
	}
}

// size returns an upper bound of the group's size in the assignment.
func (g *partGroup) size() int { return g.encodedSize() + 16 }

func (g *partGroup) encodedSize() int {
	return 1 + protowire.SizeBytes(g.locality.size()) + g.bytes + 1 + protowire.SizeBytes(g.weightSize())
}

// append appends a LocalityLbEndpoints: locality, lb_endpoints,
// load_balancing_weight.
func (g *partGroup) append(out []byte) []byte {
	out = protowire.AppendTag(out, 1, protowire.BytesType)
	out = protowire.AppendVarint(out, uint64(g.locality.size()))
	out = g.locality.append(out)
	for _, p := range g.parts {
		out = protowire.AppendTag(out, 2, protowire.BytesType)
		out = protowire.AppendBytes(out, p.encoded)
	}
	out = protowire.AppendTag(out, 3, protowire.BytesType)
	out = protowire.AppendVarint(out, uint64(g.weightSize()))
	out = protowire.AppendTag(out, 1, protowire.VarintType)
	return protowire.AppendVarint(out, g.weight)
}

func (g *partGroup) weightSize() int { return 1 + protowire.SizeVarint(g.weight) }

func (k localityKey) size() int {
	n := 0
	for _, s := range []string{k.region, k.zone, k.subZone} {
		if s != "" {
			n += 1 + protowire.SizeBytes(len(s))
		}
	}
	return n
}

func (k localityKey) append(out []byte) []byte {
	for i, s := range []string{k.region, k.zone, k.subZone} {
		if s != "" {
			out = protowire.AppendTag(out, protowire.Number(i+1), protowire.BytesType)
			out = protowire.AppendString(out, s)
		}
	}
	return out
}
