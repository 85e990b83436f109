// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"maps"
	"sync"
)

// memo keeps results by key. Callers that ask for a key at the same time share one computation. The
// zero value is empty.
type memo[K comparable, V any] struct {
	mu    sync.Mutex
	known map[K]func() V
}

// get returns the result for a key, computed if nobody has asked for it.
func (m *memo[K, V]) get(key K, compute func() V) V {
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

// has reports whether somebody has asked for a key.
func (m *memo[K, V]) has(key K) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.known[key] != nil
}

// all returns all results. It waits for those that are being computed.
func (m *memo[K, V]) all() map[K]V {
	m.mu.Lock()
	results := maps.Clone(m.known)
	m.mu.Unlock()
	out := make(map[K]V, len(results))
	for key, result := range results {
		out[key] = result()
	}
	return out
}
