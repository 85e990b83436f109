// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"slices"
	"testing"
	"unique"

	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/index"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/wire"
)

// TestDivided: each thing is worked on once, in order, no more of them at a time than
// a part has, with the lock held, which others can have in between.
func TestDivided(t *testing.T) {
	for _, n := range []int{0, 1, partSize.Get(), partSize.Get() + 1, 3*partSize.Get() + 7} {
		c, next := newCache(), 0
		c.divided(n, func(from, to int) {
			if c.mu.TryLock() {
				t.Fatal("the lock is not held")
			}
			if from != next || to <= from || to-from > partSize.Get() {
				t.Fatalf("part %d to %d after %d", from, to, next)
			}
			next = to
		})
		if next != n {
			t.Errorf("%d of %d things were worked on", next, n)
		}
	}
}

// TestPins: a topic stays while a request is about to use it, also if it names it
// twice, and a type is forgotten with its last one.
func TestPins(t *testing.T) {
	c := newCache()
	topics, unpin := c.pin("type", []string{"b", wire.WildcardName, "a", "b"})
	if got := index.Names(topics); !slices.Equal(got, []string{"a", "b"}) {
		t.Fatalf("topics of %q, want a and b", got)
	}
	again, unpinAgain := c.pin("type", []string{"a"})
	unpin()
	if again[0] != topics[0] || c.index.Of("type").Find("a") != again[0] || c.index.Len() != 1 {
		t.Errorf("the index has %v when only a is pinned", c.index)
	}
	unpinAgain()
	if c.index.Types() != 0 {
		t.Errorf("the index has %v in the end", c.index)
	}
	if c.index.Len() != 0 {
		t.Errorf("the index has %v in the end", c.index)
	}
}

// TestEndWhileAttaching: a selection whose last client leaves while it is put into the
// index leaves that, too, and so does the one that it was made from.
func TestEndWhileAttaching(t *testing.T) {
	c := newCache()
	conn := &connection{cache: c, identity: identity{view: unique.Make(View{})}}
	sub, err := conn.subscription("type", 0)
	if err != nil {
		t.Fatal(err)
	}
	subscribe := func(list ...string) (made *selection, unpin func()) {
		topics, unpin := c.pin("type", list)
		return c.subscribe(sub, names{selectionKey: selectionKey{view: conn.view, typeURL: "type", sum: index.Sum(topics), count: len(topics)}, topics: topics}), unpin
	}
	first, unpin := subscribe("a", "b")
	c.attach(first, nil)
	unpin()
	second, unpin := subscribe("b", "c")
	c.unsubscribe(sub)
	c.detach()
	if n := c.index.Len(); n != 3 {
		t.Errorf("%d topics while the second is attached, want 3: what it was made from is held", n)
	}
	c.attach(second, first)
	unpin()
	c.detach()
	if c.index.Types() != 0 || len(c.leaving) != 0 || c.index.Len() != 0 {
		t.Errorf("in the end the index has %v", c.index)
	}
}
