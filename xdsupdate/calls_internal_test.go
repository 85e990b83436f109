// SPDX-License-Identifier: Apache-2.0

package xdsupdate

import (
	"slices"
	"testing"
)

// TestCalls: calls are made in their order, also those that come during a call. A call that panics does not
// end the later ones.
func TestCalls(t *testing.T) {
	var c calls[int]
	var made []int
	var run func()
	run = func() {
		c.run(func(n int) {
			made = append(made, n)
			switch n {
			case 1:
				c.add(3)
				run() // the outer run makes the call
				made = append(made, -1)
			case 4:
				panic("no")
			}
		})
	}
	c.add(1)
	c.add(2)
	run()
	c.add(4)
	c.add(5)
	func() {
		defer func() { _ = recover() }()
		run()
		t.Error("the panic is lost")
	}()
	run()
	for n := range 2 * maxSpare.Get() {
		c.add(10 + n)
	}
	run()
	if cap(c.waiting) > maxSpare.Get() {
		t.Errorf("room for %d calls is kept", cap(c.waiting))
	}
	if want := []int{1, -1, 2, 3, 4, 5, 10, 11}; !slices.Equal(made[:len(want)], want) || len(made) != len(want)-2+2*maxSpare.Get() {
		t.Errorf("made %v, want %v and so on", made, want)
	}
}

// TestCallsWithoutEnd: a queue that is never empty does not grow.
func TestCallsWithoutEnd(t *testing.T) {
	var c calls[int]
	c.add(1000)
	c.run(func(n int) {
		if n > 0 {
			c.add(n - 1)
		}
		if cap(c.waiting) > 4*maxSpare.Get() {
			t.Fatalf("room for %d calls is kept for one", cap(c.waiting))
		}
	})
}
