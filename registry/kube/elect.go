// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"cmp"
	"slices"
	"strings"

	"github.com/pilotkit/pilotkit/registry"
)

// memberKey identifies the endpoints of which only one counts: those of slices
// with one address and port name.
type memberKey struct{ address, port string }

func keyOf(ep *registry.Endpoint) memberKey { return memberKey{ep.Address(), ep.ServicePortName} }

func (k memberKey) compare(l memberKey) int {
	if c := strings.Compare(k.address, l.address); c != 0 {
		return c
	}
	return strings.Compare(k.port, l.port)
}

// candidate is an endpoint that a slice has built, with its place there; the zero
// candidate is none.
type candidate struct {
	slice *sliceNode
	built int
}

func (c candidate) endpoint() *registry.Endpoint {
	if c.slice == nil {
		return nil
	}
	return c.slice.built[c.built]
}

// touched is a key of a host that may have another endpoint after the batch.
type touched struct {
	memberKey
	former *registry.Endpoint
}

// touch remembers the endpoint that a key has, before it changes. Of several
// touches of a key the first one counts. Where many slices have the address, that is
// known before an election goes through all of them.
func (e *engine) touch(h *host, k memberKey) {
	w := e.batch.touch(h)
	if p, _ := e.holders.Get(k.address); p.slices.more != nil {
		if _, known := w.contested[k]; known {
			return
		}
		if w.contested == nil {
			w.contested = map[memberKey]struct{}{}
		}
		w.contested[k] = struct{}{}
	}
	w.touched = append(w.touched, touched{k, e.elect(h, k).endpoint()})
}

// elect returns the candidate for a key that counts: that of a healthy endpoint before
// others, then of the first slice by name, then of what is listed there under the
// lowest address, and first. The slices that may have one are those at the address,
// nearly always one.
func (e *engine) elect(h *host, k memberKey) candidate {
	var best candidate
	p, _ := e.holders.Get(k.address)
	for n := range p.slices.all {
		if n.host != h {
			continue
		}
		from, to := e.candidateRange(n, k.address)
		for b := from; b < to; b++ {
			if ep := n.built[b]; ep != nil && keyOf(ep) == k && (best.slice == nil || compareCandidates(candidate{n, b}, best) < 0) {
				best = candidate{n, b}
			}
		}
	}
	return best
}

// candidateRange returns a range of what a slice has built that includes everything
// with an address. Only endpoints of several addresses have another one than is
// listed.
func (e *engine) candidateRange(n *sliceNode, address string) (from, to int) {
	if e.options.DualStack {
		return 0, len(n.built)
	}
	i, _ := slices.BinarySearchFunc(n.endpoints, address, func(l listedEndpoint, a string) int { return strings.Compare(l.address, a) })
	j := i
	for j < len(n.endpoints) && n.endpoints[j].address == address {
		j++
	}
	return i * len(n.ports), j * len(n.ports)
}

func compareCandidates(a, b candidate) int {
	return cmp.Or(
		cmp.Compare(unhealthiness(a.endpoint()), unhealthiness(b.endpoint())),
		strings.Compare(a.slice.name, b.slice.name),
		cmp.Compare(a.built, b.built),
	)
}

func unhealthiness(ep *registry.Endpoint) int {
	if ep.HealthStatus == registry.Healthy {
		return 0
	}
	return 1
}

// adopt puts the endpoint that readers know in the place of an equal one that has
// taken over its key, as one slice may take over from another: then nothing
// changes. It returns the endpoint that counts.
func adopt(winner candidate, known *registry.Endpoint) *registry.Endpoint {
	ep := winner.endpoint()
	if ep == known || known == nil || !sameEndpoint(known, ep) || slices.Contains(winner.slice.built, known) {
		return ep
	}
	winner.slice.built[winner.built] = known
	return known
}

func sameEndpoint(a, b *registry.Endpoint) bool {
	return a == b || a != nil && b != nil && a.Address() == b.Address() && a.Equal(b)
}
