// SPDX-License-Identifier: Apache-2.0

package hops

import (
	"slices"
	"strings"
	"testing"
)

// maxFrames is the largest number of frames between the queue of a store and the root.
const maxFrames = 15

// Walk is a change that a client gets.
type Walk struct {
	// Heading is the beginning of the line in front of the walk's table in docs/architecture.md, whose path is Page.
	Page, Heading string
	// File has Text with one of States in the place of STATE. The client gets each state in a resource of the type.
	File, Text, TypeURL string
	States              [3]string
	// Most is the largest number of hops.
	Most int
}

// Content returns the content of the walk's file in one of its states.
func (w *Walk) Content(state int) string { return strings.ReplaceAll(w.Text, "STATE", w.States[state]) }

// Check makes the changes on a plane, whose directory has the first state. It fails the test if the walk of the
// last change is not the documented one, or has too many hops or frames.
func (w *Walk) Check(tb testing.TB, p *Plane) {
	tb.Helper()
	p.Await(w.TypeURL, w.States[0])
	next := func(state int) {
		p.Write(w.File, w.Content(state))
		p.Await(w.TypeURL, w.States[state])
	}
	next(1) // the first change of a kind also makes what later ones find
	stacks := Record(tb, func() { next(2) })
	got := stacks.Hops()
	if want := Documented(tb, w.Page, w.Heading); !slices.Equal(got, want) {
		tb.Errorf("%s has the walk\n%s, but the recorded one is\n%s", w.Page, text(want), text(got))
	}
	if len(got) > w.Most {
		tb.Errorf("%d hops, at most %d are allowed", len(got), w.Most)
	}
	if n := stacks.Frames("internal/notify.(*Queue[...]).handleBatch", "xdsupdate.(*Pusher).commit"); n == 0 || n > maxFrames {
		tb.Errorf("%d frames from the queue of the store to the root, at most %d are allowed", n, maxFrames)
	}
}

// text returns a line for each hop.
func text(list []Hop) string {
	var b strings.Builder
	for _, h := range list {
		b.WriteString(h.String() + "\n")
	}
	return b.String()
}
