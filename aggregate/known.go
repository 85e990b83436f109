// SPDX-License-Identifier: Apache-2.0

package aggregate

import (
	"slices"

	"github.com/pilotkit/pilotkit/registry"
)

// serviceKey identifies a service within one registry.
type serviceKey struct {
	hostname              registry.Hostname
	namespace, objectName string
	address               string
}

func keyOfService(s *registry.Service) serviceKey {
	return serviceKey{s.Hostname, s.Attributes.Namespace, s.Attributes.ObjectName, s.DefaultAddress}
}

// known is the state that handlers have been notified about: the services or the workloads of a
// registry and its predecessors. It translates events of the registry into events relative to that
// state, so a registry that replaces another one may start from nothing: its Add of an object that
// the predecessor had becomes an Update, or no event.
type known[K comparable, V interface{ Equal(V) bool }] map[K]*notified[V]

// notified is the last state of an object that handlers have been notified about.
type notified[V any] struct {
	value V
	// by is the registry of the last event.
	by *registration
}

// take records an event. It returns the event for handlers and, for an Update, the state that they
// knew. ok is false if handlers need no event.
func (k known[K, V]) take(key K, now notified[V], event registry.Event) (prev V, e registry.Event, ok bool) {
	last, exists := k[key]
	switch {
	case event == registry.EventDelete:
		delete(k, key)
		return prev, registry.EventDelete, exists
	case !exists:
		first := now // escapes to the heap; later events of the object reuse it
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

// rename moves the state of one key to another key, unless the other key has a state.
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

// sorted returns the states that handlers know.
func (k known[K, V]) sorted(compare func(a, b V) int) []V {
	out := make([]V, 0, len(k))
	for _, n := range k {
		out = append(out, n.value)
	}
	slices.SortFunc(out, compare)
	return out
}

// drop removes the unwanted states and returns them.
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
