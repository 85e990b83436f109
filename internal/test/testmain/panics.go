// SPDX-License-Identifier: Apache-2.0

package testmain

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.uber.org/atomic"

	"github.com/pilotkit/pilotkit/internal/guard"
)

// seen are the panics of this process.
var seen panics //nolint:gochecknoglobals // What is recovered belongs to the process.

type panics struct {
	unexpected atomic.Int64

	mu       sync.Mutex
	expected []*expectation
}

// expectation is a panic that a test provokes.
type expectation struct {
	text string
	met  bool
}

// ExpectPanic says that the test makes the library recover panics whose value or stack
// contains a text. The test fails if there is none.
func ExpectPanic(tb testing.TB, text string) {
	tb.Helper()
	e := &expectation{text: text}
	seen.mu.Lock()
	seen.expected = append(seen.expected, e)
	seen.mu.Unlock()
	tb.Cleanup(func() {
		seen.mu.Lock()
		defer seen.mu.Unlock()
		seen.expected = slices.DeleteFunc(seen.expected, func(other *expectation) bool { return other == e })
		if !e.met {
			tb.Errorf("no panic with %q was recovered", text)
		}
	})
}

// add takes a panic, and shows it if no test expects it.
func (s *panics) add(p *guard.PanicError) {
	if byTest(p) || s.expects(p) {
		return
	}
	s.unexpected.Inc()
	fmt.Fprintf(os.Stderr, "FAIL: an unexpected panic was recovered: %v\n%s\n", p, p.Stack)
}

func (s *panics) expects(p *guard.PanicError) (is bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := p.Error()
	for _, e := range s.expected {
		if strings.Contains(text, e.text) || strings.Contains(p.Stack, e.text) {
			e.met, is = true, true
		}
	}
	return is
}
