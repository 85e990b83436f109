// SPDX-License-Identifier: Apache-2.0

package aggregate

import (
	"slices"

	"github.com/pilotkit/pilotkit/registry"
)

// serviceKey names a service among those of one registry.
type serviceKey struct {
	hostname              registry.Hostname
	namespace, objectName string
	address               string
}

func keyOfService(s *registry.Service) serviceKey {
	return serviceKey{s.Hostname, s.Attributes.Namespace, s.Attributes.ObjectName, s.DefaultAddress}
}

// known is what handlers were notified of, of the services or the workloads of a
// registry and its predecessors. A registry's event becomes one that fits what
// handlers know, so that a registry that takes over from another one may begin
// from nothing: an Add of what its predecessor had is an Update, or no event.
type known[K comparable, V interface{ Equal(V) bool }] map[K]*notified[V]

// notified is the last state of a thing that handlers were notified of.
type notified[V any] struct {
	value V
	// by is the registry that it came from.
	by *registration
}

// take takes an event. It returns the event for handlers, and for an Update what
// they knew; ok is false if there is none.
func (k known[K, V]) take(key K, now notified[V], event registry.Event) (prev V, e registry.Event, ok bool) {
	last, exists := k[key]
	switch {
	case event == registry.EventDelete:
		delete(k, key)
		return prev, registry.EventDelete, exists
	case !exists:
		first := now // of which there is a copy on the heap, and none of the next ones
		k[key] = &first
		return prev, registry.EventAdd, true
	}
	old := *last
	*last = now
	if old.by != now.by && old.value.Equal(now.value) {
		return prev, 0, false
	}
	return old.value, registry.EventUpdate, true
}

// rename makes what is known under one key known under another one.
func (k known[K, V]) rename(from, to K) {
	if from == to {
		return
	}
	if old, exists := k[from]; exists {
		delete(k, from)
		if _, taken := k[to]; !taken {
			k[to] = old
		}
	}
}

// sorted returns what handlers know.
func (k known[K, V]) sorted(compare func(a, b V) int) []V {
	out := make([]V, 0, len(k))
	for _, n := range k {
		out = append(out, n.value)
	}
	slices.SortFunc(out, compare)
	return out
}

// drop forgets what is unwanted, and returns it.
func (k known[K, V]) drop(unwanted func(K, *notified[V]) bool, compare func(a, b V) int) []V {
	gone := known[K, V]{}
	for key, n := range k {
		if unwanted(key, n) {
			gone[key] = n
			delete(k, key)
		}
	}
	return gone.sorted(compare)
}
