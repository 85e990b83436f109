// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/file"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/configstore/manifest"
	"github.com/pilotkit/pilotkit/configstore/memory"
)

const benchmarked = 100_000

func manyEntries() []configstore.Config {
	out := make([]configstore.Config, benchmarked)
	for i := range out {
		out[i] = entry(fmt.Sprintf("entry-%06d", i), "1")
	}
	return out
}

// BenchmarkLoad loads 100,000 ServiceEntries.
func BenchmarkLoad(b *testing.B) {
	path := saved(b, manyEntries()...)
	b.ReportAllocs()
	for b.Loop() {
		if c := New(memory.NewController(memory.Make(istio.Schemas())), path); !c.Status().Stale {
			b.Fatal(c.Status().Refused)
		}
	}
}

// BenchmarkLoadFiles is the cost that a checkpoint avoids: parsing and validating the objects from
// 100 files.
func BenchmarkLoadFiles(b *testing.B) {
	dir := b.TempDir()
	var text bytes.Buffer
	for i, c := range manyEntries() {
		y, err := manifest.Marshal(c)
		if err != nil {
			b.Fatal(err)
		}
		text.WriteString("---\n")
		text.Write(y)
		if i%(benchmarked/100) == benchmarked/100-1 {
			if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%06d.yaml", i)), text.Bytes(), 0o600); err != nil {
				b.Fatal(err)
			}
			text.Reset()
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		store := memory.Make(istio.Schemas())
		if err := file.New(dir, store).Reload(); err != nil {
			b.Fatal(err)
		}
		if n := len(store.List(istio.ServiceEntry, "")); n != benchmarked {
			b.Fatalf("%d objects", n)
		}
	}
}

// BenchmarkSave writes 100,000 ServiceEntries.
func BenchmarkSave(b *testing.B) {
	s := newSource(b, true, manyEntries()...)
	c := New(s, filepath.Join(b.TempDir(), "checkpoint"))
	c.Drain()
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		s.put(b, entry("changed", fmt.Sprint(i)))
		c.Drain()
		if err := c.Save(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkWriteWhileSaving changes an object until the handlers have handled it, without a save,
// and while a file of 100,000 objects is written continuously.
func BenchmarkWriteWhileSaving(b *testing.B) {
	for name, saving := range map[string]bool{"quiet": false, "saving": true} {
		b.Run(name, func(b *testing.B) {
			s := newSource(b, true, manyEntries()...)
			c := New(s, filepath.Join(b.TempDir(), "checkpoint"))
			c.Drain()
			stop, done := make(chan struct{}), make(chan struct{})
			go func() {
				defer close(done)
				for saving {
					select {
					case <-stop:
						return
					default:
						_ = c.Save()
					}
				}
			}()
			for i := 0; b.Loop(); i++ {
				s.put(b, entry("changed", fmt.Sprint(i)))
				c.Drain()
				if c.Get(istio.ServiceEntry, "changed", "ns") == nil {
					b.Fatal("not shown")
				}
			}
			close(stop)
			<-done
		})
	}
}
