// SPDX-License-Identifier: Apache-2.0

// Package memo keeps results of computations by key. Its type may be used from any goroutine.
package memo

import (
	"maps"
	"sync"

	"github.com/pilotkit/pilotkit/internal/limit"
)

// most is the maximum number of results. The next one drops all others, because their keys may be
// views that are gone.
const most limit.Size = 16384

// Results keeps results by key. Concurrent calls for a key share one computation, which may be
// repeated later. The zero value is empty.
type Results[K comparable, V any] struct {
	mu     sync.Mutex
	known  map[K]func() V
	forgot bool
}

// Get returns the result for a key, and computes it if it is not kept.
func (m *Results[K, V]) Get(key K, compute func() V) V {
	m.mu.Lock()
	result := m.known[key]
	if result == nil {
		if m.known == nil || len(m.known) >= most.Get() {
			m.forgot = m.known != nil
			m.known = make(map[K]func() V)
		}
		result = sync.OnceValue(compute)
		m.known[key] = result
	}
	m.mu.Unlock()
	return result()
}

// Has reports whether the result of a key is kept.
func (m *Results[K, V]) Has(key K) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.known[key] != nil
}

// Forgot reports whether results were dropped.
func (m *Results[K, V]) Forgot() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.forgot
}

// All returns the kept results. It waits for results that are being computed.
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
