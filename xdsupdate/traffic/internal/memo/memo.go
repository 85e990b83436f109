// SPDX-License-Identifier: Apache-2.0

// Package memo keeps results of computations by key. Its type may be used from any goroutine.
package memo

import (
	"maps"
	"sync"
)

// Results keeps results by key. Concurrent calls for a key share one computation. The zero value is
// empty.
type Results[K comparable, V any] struct {
	mu    sync.Mutex
	known map[K]func() V
}

// Get returns the result for a key. The first call computes it.
func (m *Results[K, V]) Get(key K, compute func() V) V {
	m.mu.Lock()
	result := m.known[key]
	if result == nil {
		if m.known == nil {
			m.known = make(map[K]func() V)
		}
		result = sync.OnceValue(compute)
		m.known[key] = result
	}
	m.mu.Unlock()
	return result()
}

// Has reports whether Get was called for a key.
func (m *Results[K, V]) Has(key K) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.known[key] != nil
}

// All returns all results. It waits for results that are being computed.
func (m *Results[K, V]) All() map[K]V {
	m.mu.Lock()
	results := maps.Clone(m.known)
	m.mu.Unlock()
	out := make(map[K]V, len(results))
	for key, result := range results {
		out[key] = result()
	}
	return out
}
