// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"slices"
	"testing"
)

// calls records the calls of an observer about streams.
type calls struct {
	NoObserver
	seen []string
}

func (c *calls) StreamOpened(Stream)        { c.seen = append(c.seen, "opened") }
func (c *calls) StreamClosed(Stream, error) { c.seen = append(c.seen, "closed") }

// TestEndBeforeOpening: a stream that ends while its identity becomes known is not opened
// any more, and one that was not opened is not closed.
func TestEndBeforeOpening(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		do   func(s *Server, st *stream)
		want []string
	}{
		"opened":       {func(s *Server, st *stream) { s.connected(st); s.closed(st) }, []string{"opened", "closed"}},
		"ended before": {func(s *Server, st *stream) { s.closed(st); s.connected(st) }, nil},
		"never opened": {func(s *Server, st *stream) { s.closed(st) }, nil},
	} {
		seen := &calls{}
		s := New(nil, Options{Observer: seen})
		st := &stream{server: s, conn: &connection{cache: s.cache}}
		st.about.Store(&Stream{ID: 1})
		test.do(s, st)
		if !slices.Equal(seen.seen, test.want) {
			t.Errorf("%s: %q, want %q", name, seen.seen, test.want)
		}
	}
}
