// SPDX-License-Identifier: Apache-2.0

package cow_test

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	"github.com/pilotkit/pilotkit/internal/cow"
)

// thing is a typical element of the library's sequences: a pointer to something larger.
type thing struct {
	key int
	_   [6]uint64
}

func byThing(a, b *thing) int    { return cmp.Compare(a.key, b.key) }
func identical(a, b *thing) bool { return a == b }

func things(n int) []*thing {
	out := make([]*thing, n)
	for i := range out {
		out[i] = &thing{key: i}
	}
	return out
}

// BenchmarkReplace replaces one element, which is looked up, in a published
// sequence. BenchmarkReplaceLimit is the least that can be done for it.
func BenchmarkReplace(b *testing.B) {
	for _, n := range []int{1, 100, 1000, 10_000, 100_000} {
		b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			all := things(n)
			s, i := cow.FromSlice(all), 0
			for b.Loop() {
				i = (i + 7919) % n
				v := &thing{key: i}
				s, _ = s.Replace(byThing, all[i], v, identical)
				all[i] = v
			}
		})
	}
}

// BenchmarkReplaceLimit writes a new element to a known place: chunks of 128, of
// which one is copied, and the list of chunks.
func BenchmarkReplaceLimit(b *testing.B) {
	for _, n := range []int{1, 100, 1000, 10_000, 100_000} {
		b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			var chunks []*[]*thing
			for chunk := range slices.Chunk(things(n), 128) {
				chunks = append(chunks, &chunk)
			}
			i := 0
			for b.Loop() {
				i = (i + 7919) % n
				chunk := slices.Clone(*chunks[i/128])
				chunk[i%128] = &thing{key: i}
				chunks = slices.Clone(chunks)
				chunks[i/128] = &chunk
			}
		})
	}
}

// BenchmarkReplaceFlatLimit copies the sequence as a plain slice.
func BenchmarkReplaceFlatLimit(b *testing.B) {
	for _, n := range []int{100, 1000, 10_000} {
		b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			all, i := things(n), 0
			for b.Loop() {
				i = (i + 7919) % n
				all = slices.Clone(all)
				all[i] = &thing{key: i}
			}
		})
	}
}

// BenchmarkInsertDelete adds an element and takes it out again.
func BenchmarkInsertDelete(b *testing.B) {
	for _, n := range []int{100, 10_000} {
		b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			s, i := cow.FromSlice(things(n)), 0
			for b.Loop() {
				i = (i + 7919) % n
				v := &thing{key: i}
				s = s.Insert(byThing, v)
				s, _ = s.Delete(byThing, v, identical)
			}
		})
	}
}

// BenchmarkEdit replaces one tenth of the elements in one edit; the figure is
// per edit.
func BenchmarkEdit(b *testing.B) {
	for _, n := range []int{1000, 10_000} {
		b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			all := things(n)
			s := cow.FromSlice(all)
			for b.Loop() {
				e := s.Edit(n / 10)
				for i := 0; i < n; i += 10 {
					v := &thing{key: i}
					e.Replace(byThing, all[i], v, identical)
					all[i] = v
				}
				s = e.Sorted()
			}
		})
	}
}

func BenchmarkAll(b *testing.B) {
	s := cow.FromSlice(things(10_000))
	b.ReportAllocs()
	for b.Loop() {
		sum := 0
		for v := range s.All() {
			sum += v.key
		}
	}
}
