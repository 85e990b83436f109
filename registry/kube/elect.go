// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"cmp"
	"slices"
	"strings"

	"github.com/pilotkit/pilotkit/registry"
)

// memberKey is an address and port name in a service. Of the endpoints in slices with the same key
// only one is used.
type memberKey struct{ address, port string }

func keyOf(ep *registry.Endpoint) memberKey { return memberKey{ep.Address(), ep.ServicePortName} }

func (k memberKey) compare(l memberKey) int {
	if c := strings.Compare(k.address, l.address); c != 0 {
		return c
	}
	return strings.Compare(k.port, l.port)
}

// candidate is an endpoint that was built from a slice, with its position there. The zero candidate
// means none.
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

// touched is a key of a host whose endpoint may change in the batch.
type touched struct {
	memberKey
	former *registry.Endpoint
}

// touch records the endpoint of a key before it changes. Of several touches of a key the first
// wins. If many slices have the address, touch detects a repetition before it compares all of them.
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

// elect returns the candidate to use for a key. Healthy endpoints precede others; then the order is
// by the name of the slice, and by the position in the slice, which is sorted by address. Only the
// slices at the address may have a candidate, nearly always one slice.
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

// candidateRange returns a range of the endpoints built from a slice that includes all endpoints
// with an address. Only an endpoint with several addresses may have an address other than the
// listed one.
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

// adopt reuses the published endpoint if it equals the winner, for example when one slice takes
// over an endpoint from another, so that nothing changes. It returns the endpoint to use.
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
