// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/wire"
)

// TestDivided: each thing is worked on once, in order, no more of them at a time than
// a part has, with the lock held, which others can have in between.
func TestDivided(t *testing.T) {
	for _, n := range []int{0, 1, partSize, partSize + 1, 3*partSize + 7} {
		c, next := newCache(false), 0
		c.divided(n, func(from, to int) {
			if c.mu.TryLock() {
				t.Fatal("the lock is not held")
			}
			if from != next || to <= from || to-from > partSize {
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
	c := newCache(false)
	topics, unpin := c.pin("type", []string{"b", wire.WildcardName, "a", "b"})
	if got := namesOf(topics); !slices.Equal(got, []string{"a", "b"}) {
		t.Fatalf("topics of %q, want a and b", got)
	}
	again, unpinAgain := c.pin("type", []string{"a"})
	unpin()
	if again[0] != topics[0] || c.index["type"].topics["a"] != again[0] || len(c.index["type"].topics) != 1 {
		t.Errorf("the index has %v when only a is pinned", c.index["type"].topics)
	}
	if found := c.known("type", []string{"b", "a"}); !slices.Equal(found, again) {
		t.Errorf("known topics are %q, want a", namesOf(found))
	}
	unpinAgain()
	if len(c.index) != 0 {
		t.Errorf("the index has %v in the end", c.index)
	}
	if found := c.known("type", []string{"a"}); found != nil || len(c.index) != 0 {
		t.Errorf("known topics of no type are %q, and the index has %v", namesOf(found), c.index)
	}
}

// TestSetsOfTopics compares unions, differences and intersections of sorted topics with
// what maps say, for lists of all sizes.
func TestSetsOfTopics(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	all := make([]*topic, 400)
	for i := range all {
		all[i] = &topic{name: fmt.Sprintf("%03d", i), hash: uint64(i)}
	}
	some := func() (list []*topic, has map[*topic]bool) {
		has = make(map[*topic]bool)
		every := []int{1, 2, 40, 400}[random.IntN(4)]
		for _, p := range all[:random.IntN(len(all)+1)] {
			if random.IntN(every) == 0 {
				list, has[p] = append(list, p), true
			}
		}
		return list, has
	}
	for range 2_000 {
		a, inA := some()
		b, inB := some()
		before := [][]*topic{slices.Clone(a), slices.Clone(b)}
		for what, tt := range map[string]struct {
			got  []*topic
			want func(p *topic) bool
		}{
			"union":        {union(a, b), func(p *topic) bool { return inA[p] || inB[p] }},
			"without":      {without(a, b), func(p *topic) bool { return inA[p] && !inB[p] }},
			"intersection": {intersection(a, b), func(p *topic) bool { return inA[p] && inB[p] }},
		} {
			var want []*topic
			for _, p := range all {
				if tt.want(p) {
					want = append(want, p)
				}
			}
			if !slices.Equal(tt.got, want) {
				t.Fatalf("%s of %q and %q is %q", what, namesOf(a), namesOf(b), namesOf(tt.got))
			}
		}
		if disjoint(a, b) != (len(intersection(a, b)) == 0) {
			t.Fatalf("disjoint(%q, %q) = %v", namesOf(a), namesOf(b), disjoint(a, b))
		}
		if !slices.Equal(a, before[0]) || !slices.Equal(b, before[1]) {
			t.Fatal("an argument was modified")
		}
	}
}

// TestFewNamesOfMany: what one name more or less of a long list takes does not grow with
// the list, but for the copy of it.
func TestFewNamesOfMany(t *testing.T) {
	const n = 100_000
	list := make([]*topic, n)
	for i := range list {
		list[i] = &topic{name: fmt.Sprintf("%06d", i)}
	}
	for what, few := range map[string]*topic{"first": list[0], "last": list[n-1], "middle": list[n/2]} {
		for name, f := range map[string]func(){
			"union":        func() { union(list, []*topic{few}) },
			"without":      func() { without(list, []*topic{few}) },
			"intersection": func() { intersection(list, []*topic{few}) },
		} {
			if got := testing.AllocsPerRun(10, f); got > 3 {
				t.Errorf("%s, %s: %v allocations", name, what, got)
			}
		}
	}
}

// TestEndWhileAttaching: a selection whose last client leaves while it is put into the
// index leaves that, too, and so does the one that it was made from.
func TestEndWhileAttaching(t *testing.T) {
	c := newCache(false)
	conn := &connection{cache: c, view: c.enter(View{})}
	sub, err := conn.subscription("type")
	if err != nil {
		t.Fatal(err)
	}
	subscribe := func(list ...string) (made *selection, unpin func()) {
		topics, unpin := c.pin("type", list)
		return c.subscribe(sub, false, names{topics: topics, sum: sumOf(topics)}), unpin
	}
	first, unpin := subscribe("a", "b")
	c.attach(first, nil)
	unpin()
	second, unpin := subscribe("b", "c")
	c.unsubscribe(sub)
	c.detach()
	if n := len(c.index["type"].topics); n != 3 {
		t.Errorf("%d topics while the second is attached, want 3: what it was made from is held", n)
	}
	c.attach(second, first)
	unpin()
	c.detach()
	if len(c.index) != 0 || len(c.leaving) != 0 || c.named != 0 {
		t.Errorf("in the end the index has %v, and counts %d", c.index, c.named)
	}
}
