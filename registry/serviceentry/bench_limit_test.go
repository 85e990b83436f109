// SPDX-License-Identifier: Apache-2.0

package serviceentry_test

import (
	"hash/maphash"
	"maps"
	"math/bits"
	"net/netip"
	"slices"
	"strings"

	networking "istio.io/api/networking/v1alpha3"

	"go.uber.org/atomic"
)

// limitRegistry is the least that a registry of ServiceEntries has to do: it
// shares equal label sets, accounts and localities, keeps one endpoint for each
// address (ports belong to the service), and finds services by host name and
// endpoints by address.
type limitRegistry struct {
	seed   maphash.Seed
	hosts  map[string]*limitService
	byIP   map[netip.Addr]*limitEndpoint
	labels map[uint64][]map[string]string
	texts  map[string]*string
}

type limitService struct {
	hostname  string
	ports     []*networking.ServicePort
	endpoints []limitEndpoint
}

type limitEndpoint struct {
	address           netip.Addr
	labels            map[string]string
	account, locality *string
	weight            uint32
}

func newLimitRegistry() *limitRegistry {
	return &limitRegistry{
		seed: maphash.MakeSeed(), hosts: map[string]*limitService{}, byIP: map[netip.Addr]*limitEndpoint{},
		labels: map[uint64][]map[string]string{}, texts: map[string]*string{},
	}
}

// put takes the new state of an entry, and reports whether it is a valid one.
func (r *limitRegistry) put(spec *networking.ServiceEntry) bool {
	hostname := spec.GetHosts()[0]
	if old := r.hosts[hostname]; old != nil {
		for i := range old.endpoints {
			delete(r.byIP, old.endpoints[i].address)
		}
	}
	s := &limitService{hostname: hostname, ports: spec.GetPorts(), endpoints: make([]limitEndpoint, len(spec.GetEndpoints()))}
	for i, e := range spec.GetEndpoints() {
		address, err := netip.ParseAddr(e.GetAddress())
		if err != nil {
			return false
		}
		s.endpoints[i] = limitEndpoint{
			address: address, labels: r.internLabels(e.GetLabels()), weight: e.GetWeight(),
			account: r.internText(e.GetServiceAccount()), locality: r.internText(e.GetLocality()),
		}
		r.byIP[address] = &s.endpoints[i]
	}
	r.hosts[hostname] = s
	return true
}

func (r *limitRegistry) internText(s string) *string {
	if p := r.texts[s]; p != nil {
		return p
	}
	r.texts[s] = &s
	return &s
}

func (r *limitRegistry) internLabels(labels map[string]string) map[string]string {
	var hash uint64
	for k, v := range labels {
		hash += (maphash.String(r.seed, k) ^ bits.RotateLeft64(maphash.String(r.seed, v), 1)) * 0x9e3779b97f4a7c15
	}
	for _, known := range r.labels[hash] {
		if maps.Equal(known, labels) {
			return known
		}
	}
	r.labels[hash] = append(r.labels[hash], labels)
	return labels
}

// limitSelectors finds the selectors that match a set of labels by an inverted
// index: each is filed under one of its labels.
type limitSelectors map[limitLabel][]*limitSelector

type limitLabel struct{ key, value string }

type limitSelector struct {
	labels    map[string]string
	endpoints *limitSequence
}

func (s limitSelectors) add(key, value string) *limitSelector {
	selector := &limitSelector{labels: map[string]string{key: value}, endpoints: newLimitSequence(nil)}
	l := limitLabel{key, value}
	s[l] = append(s[l], selector)
	return selector
}

// matching calls f for each selector that matches.
func (s limitSelectors) matching(labels map[string]string, f func(*limitSelector)) {
	for k, v := range labels {
		for _, selector := range s[limitLabel{k, v}] {
			if selector.matches(labels) {
				f(selector)
			}
		}
	}
}

func (s *limitSelector) matches(labels map[string]string) bool {
	for k, v := range s.labels {
		if w, ok := labels[k]; !ok || v != w {
			return false
		}
	}
	return true
}

// limitSequence is a sorted sequence that readers see as a whole while it is
// replaced: chunks that are copied when they change.
type limitSequence struct {
	chunks atomic.Pointer[[][]*limitAddress]
}

type limitAddress struct {
	address string
	weight  uint32
}

const limitChunk = 128

func newLimitSequence(sorted []*limitAddress) *limitSequence {
	var chunks [][]*limitAddress
	for c := range slices.Chunk(sorted, limitChunk) {
		chunks = append(chunks, c)
	}
	s := &limitSequence{}
	s.chunks.Store(&chunks)
	return s
}

func (a *limitAddress) compare(b *limitAddress) int { return strings.Compare(a.address, b.address) }

// put replaces the element of an address, or inserts it. Chunks are not divided:
// no benchmark needs it.
func (s *limitSequence) put(e *limitAddress) {
	old := *s.chunks.Load()
	if len(old) == 0 {
		s.chunks.Store(&[][]*limitAddress{{e}})
		return
	}
	i, found := slices.BinarySearchFunc(old, e, func(c []*limitAddress, e *limitAddress) int { return c[0].compare(e) })
	if !found && i > 0 {
		i--
	}
	next := slices.Clone(old)
	j, found := slices.BinarySearchFunc(next[i], e, (*limitAddress).compare)
	if found {
		next[i] = slices.Clone(next[i])
		next[i][j] = e
	} else {
		next[i] = slices.Insert(slices.Clip(next[i]), j, e)
	}
	s.chunks.Store(&next)
}
