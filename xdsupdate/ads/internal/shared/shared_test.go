// SPDX-License-Identifier: Apache-2.0

package shared

import (
	"runtime"
	"strconv"
	"testing"

	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/resource"
)

func makes(text string) func() *resource.State {
	return func() *resource.State {
		r := &resource.State{TypeURL: "type", Name: "a", Bytes: func() []byte { return []byte(text) }}
		r.Exists()
		return r
	}
}

// TestShared: views with equal keys share a resource until its name may have changed, and who
// reads an older layer changes nothing.
func TestShared(t *testing.T) {
	s, a := New(), resource.Name{TypeURL: "type", Name: "a"}
	first := s.Get(0, a, "east", makes("1"))
	if s.Get(0, a, "east", makes("2")) != first {
		t.Error("the resource is not shared")
	}
	if s.Get(0, a, "west", makes("1")) == first {
		t.Error("the resource is shared by another key")
	}
	s.Advance(1, false, []resource.Name{{TypeURL: "type", Name: "b"}})
	if s.Get(1, a, "east", makes("2")) != first {
		t.Error("the resource is made anew for another name")
	}
	s.Advance(2, false, []resource.Name{a})
	if old := s.Get(1, a, "east", makes("3")); old == first || s.Get(1, a, "east", makes("3")) == old {
		t.Error("who reads an older layer is given what others have, or others are given what it has made")
	}
	second := s.Get(2, a, "east", makes("2"))
	if second == first || second.Fallback != first {
		t.Errorf("after a change the fallback is %v", second.Fallback)
	}
	s.Advance(3, true, nil)
	if s.Get(3, a, "east", makes("2")) == second {
		t.Error("the resource is the same after a change of everything")
	}
	runtime.KeepAlive(first)
	runtime.KeepAlive(second)
}

// TestSwept: entries without users are swept when they are as many as there were entries, with pushes
// and without.
func TestSwept(t *testing.T) {
	for _, pushes := range []bool{true, false} {
		s, number := New(), uint64(0)
		for i := range 10 * sweepAtLeast.Get() {
			s.Get(number, resource.Name{TypeURL: "type", Name: strconv.Itoa(i)}, nil, makes("1"))
			if i%sweepAtLeast.Get() == 0 {
				runtime.GC()
			}
			if pushes {
				number++
				s.Advance(number, false, nil)
			}
		}
		if s.count > 3*sweepAtLeast.Get() || len(s.entries) != s.count {
			t.Errorf("with pushes %t: %d entries of %d names are left", pushes, s.count, len(s.entries))
		}
	}
}
