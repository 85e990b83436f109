// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"fmt"
	"testing"
)

// Check proves one promise. S is what its suite works with, a T and a subject.
type Check[S any] struct {
	Name    string
	Promise string
	// Source is where the promise is made.
	Source string
	// Skip says why the promise does not apply to the subject; nil, or "": it
	// does.
	Skip func(S) string
	Run  func(S)
}

// Run makes each check a subtest. setUp is called once for each; it makes a fresh
// subject and sets the Timeout of the T.
func Run[S any](t *testing.T, checks []Check[S], setUp func(*T) S) {
	t.Helper()
	for _, c := range checks {
		t.Run(c.Name, func(t *testing.T) { c.execute(t, setUp) })
	}
}

func (c Check[S]) execute(tb testing.TB, setUp func(*T) S) {
	tb.Helper()
	s := setUp(&T{TB: tb, preface: c.preface()})
	if c.Skip != nil {
		if why := c.Skip(s); why != "" {
			tb.Skip(why)
		}
	}
	c.Run(s)
}

// preface is what every report of the check begins with.
func (c Check[S]) preface() string {
	return fmt.Sprintf("broken promise: %s\n\tmade in: %s\n\tseen: ", c.Promise, c.Source)
}
