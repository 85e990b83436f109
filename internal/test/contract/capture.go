// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
)

// Capture runs f as if it were a test, with its cleanups, and returns the
// failures that it reported with Errorf and Fatalf, where tb does not see them.
// Skip ends f.
func Capture(tb testing.TB, f func(tb testing.TB)) []string {
	tb.Helper()
	s := &standIn{TB: tb}
	var wg sync.WaitGroup
	wg.Go(func() {
		defer s.cleanUp()
		f(s)
	})
	wg.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failures
}

// standIn is a testing.TB that keeps the failures to itself.
type standIn struct {
	testing.TB
	mu       sync.Mutex
	failures []string
	cleanups []func()
}

// Helper does nothing, because captured failures have no line.
func (s *standIn) Helper() {}

// Errorf keeps a failure.
func (s *standIn) Errorf(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failures = append(s.failures, fmt.Sprintf(format, args...))
}

// Fatalf keeps a failure and ends the goroutine.
func (s *standIn) Fatalf(format string, args ...any) {
	s.Errorf(format, args...)
	runtime.Goexit()
}

// Skip ends the goroutine.
func (s *standIn) Skip(...any) { runtime.Goexit() }

// Failed reports whether there is a failure.
func (s *standIn) Failed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.failures) > 0
}

// Cleanup keeps f for cleanUp.
func (s *standIn) Cleanup(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cleanups = append(s.cleanups, f)
}

func (s *standIn) cleanUp() {
	s.mu.Lock()
	cleanups := s.cleanups
	s.mu.Unlock()
	for _, f := range slices.Backward(cleanups) {
		f()
	}
}
