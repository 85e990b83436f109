// SPDX-License-Identifier: Apache-2.0

package file_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/metrics"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/file"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/configstore/manifest"
	"github.com/pilotkit/pilotkit/configstore/memory"
)

// standardEntry is a ServiceEntry with two ports and five endpoints.
func standardEntry(i int, host string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "apiVersion: networking.istio.io/v1\nkind: ServiceEntry\nmetadata:\n  name: se-%d\n  namespace: ns-%02d\nspec:\n", i, i%100)
	fmt.Fprintf(&b, "  hosts:\n  - %s-%d.example.com\n  addresses:\n  - 240.0.%d.%d\n  location: MESH_INTERNAL\n  resolution: STATIC\n", host, i, i/256%256, i%256)
	b.WriteString("  ports:\n  - number: 80\n    name: http\n    protocol: HTTP\n  - number: 9090\n    name: grpc\n    protocol: GRPC\n  endpoints:\n")
	for e := range 5 {
		fmt.Fprintf(&b, "  - address: 10.%d.%d.%d\n    locality: region/zone/subzone\n    serviceAccount: sa-%d\n    weight: 1\n    labels:\n", i/256%256, i%256, e, i)
		for l := range 6 {
			fmt.Fprintf(&b, "      label-%d: value-%d\n", l, i+l)
		}
	}
	return b.String()
}

const objectsPerFile = 10

// populate writes n objects in files of ten.
func populate(tb testing.TB, dir string, n int, text func(i int, host string) string) {
	tb.Helper()
	for f := range n / objectsPerFile {
		var texts []string
		for i := range objectsPerFile {
			texts = append(texts, text(f*objectsPerFile+i, "svc"))
		}
		name := filepath.Join(dir, fmt.Sprintf("team-%02d", f%20), fmt.Sprintf("file-%04d.yaml", f))
		if err := os.MkdirAll(filepath.Dir(name), 0o750); err != nil {
			tb.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(strings.Join(texts, "---\n")), 0o600); err != nil {
			tb.Fatal(err)
		}
	}
}

// populateOne writes n objects into one file and returns its size.
func populateOne(tb testing.TB, dir string, n int, text func(i int, host string) string) int {
	tb.Helper()
	var b strings.Builder
	for i := range n {
		b.WriteString("---\n" + text(i, "svc"))
	}
	if err := os.WriteFile(filepath.Join(dir, "all.yaml"), []byte(b.String()), 0o600); err != nil {
		tb.Fatal(err)
	}
	return b.Len()
}

// peakOf returns by how much the heap grows at most while a function runs, as the
// runtime accounts for it: live objects, and dead ones that have not been swept.
func peakOf(f func()) float64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	read := func() uint64 {
		metrics.Read(sample)
		return sample[0].Value.Uint64()
	}
	runtime.GC()
	before := read()
	peak := before
	stop := make(chan struct{})
	var sampling sync.WaitGroup
	sampling.Go(func() {
		ticker := time.NewTicker(time.Millisecond)
		defer ticker.Stop()
		for {
			select {
			case <-stop:
				return
			case <-ticker.C:
				peak = max(peak, read())
			}
		}
	})
	f()
	close(stop)
	sampling.Wait()
	return float64(max(peak, read()) - before)
}

// BenchmarkLoad loads 10,000 objects into an empty store, in one file and in 1,000
// files. peak-x is the peak of the memory as a multiple of the size of the files.
// L/parse only decodes the same texts.
func BenchmarkLoad(b *testing.B) {
	const n = 10_000
	for _, files := range []string{"one", "1000"} {
		dir := b.TempDir()
		size := populateOne(b, dir, n, standardEntry)
		if files != "one" {
			if err := os.Remove(filepath.Join(dir, "all.yaml")); err != nil {
				b.Fatal(err)
			}
			populate(b, dir, n, standardEntry)
		}
		measure := func(b *testing.B, load func()) {
			b.Helper()
			b.ReportAllocs()
			b.SetBytes(int64(size))
			peak := 0.0
			for b.Loop() {
				peak = max(peak, peakOf(load))
			}
			b.ReportMetric(peak/float64(size), "peak-x")
		}
		b.Run("files="+files, func(b *testing.B) {
			measure(b, func() {
				if err := file.New(dir, memory.Make(istio.Schemas())).Reload(); err != nil {
					b.Fatal(err)
				}
			})
		})
		b.Run("L/parse/files="+files, func(b *testing.B) {
			names, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
			if err != nil {
				b.Fatal(err)
			}
			more, err := filepath.Glob(filepath.Join(dir, "*", "*.yaml"))
			if err != nil {
				b.Fatal(err)
			}
			schemas := istio.Schemas()
			measure(b, func() {
				for _, name := range append(names, more...) {
					data, err := os.ReadFile(name)
					if err != nil {
						b.Fatal(err)
					}
					if _, err := manifest.ParseAll(schemas, data, manifest.Options{}); err != nil {
						b.Fatal(err)
					}
				}
			})
		})
	}
}

// BenchmarkChangeInLargeFile changes one of n documents of one file. L/parse
// decodes that document alone, L/hash reads and hashes the file.
func BenchmarkChangeInLargeFile(b *testing.B) {
	const n = 10_000
	dir := b.TempDir()
	size := populateOne(b, dir, n, standardEntry)
	name := filepath.Join(dir, "all.yaml")
	data, err := os.ReadFile(name)
	if err != nil {
		b.Fatal(err)
	}
	host := []byte("svc-5000.example.com")
	at := bytes.Index(data, host)
	b.Run("reload", func(b *testing.B) {
		source := file.New(dir, memory.Make(istio.Schemas()))
		if err := source.Reload(); err != nil {
			b.Fatal(err)
		}
		b.ReportAllocs()
		b.SetBytes(int64(size))
		for i := 0; b.Loop(); i++ {
			b.StopTimer()
			copy(data[at:], fmt.Sprintf("s%02d", i%100))
			if err := os.WriteFile(name, data, 0o600); err != nil {
				b.Fatal(err)
			}
			b.StartTimer()
			if err := source.Reload(); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("L/parse", func(b *testing.B) {
		text := []byte(standardEntry(5000, "svc"))
		schemas := istio.Schemas()
		b.ReportAllocs()
		for b.Loop() {
			if _, err := manifest.ParseAll(schemas, text, manifest.Options{}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("L/hash", func(b *testing.B) {
		b.ReportAllocs()
		b.SetBytes(int64(size))
		for b.Loop() {
			data, err := os.ReadFile(name)
			if err != nil {
				b.Fatal(err)
			}
			if sum := sha256.Sum256(data); sum == ([sha256.Size]byte{}) {
				b.Fatal("no hash")
			}
		}
	})
}

// BenchmarkChangeAll changes all of n documents of one file. L/parse only decodes
// the same texts.
func BenchmarkChangeAll(b *testing.B) {
	const n = 10_000
	dir := b.TempDir()
	populateOne(b, dir, n, standardEntry)
	name := filepath.Join(dir, "all.yaml")
	data, err := os.ReadFile(name)
	if err != nil {
		b.Fatal(err)
	}
	texts := [][]byte{data, bytes.ReplaceAll(data, []byte("weight: 1"), []byte("weight: 2"))}
	b.Run("reload", func(b *testing.B) {
		source := file.New(dir, memory.Make(istio.Schemas()))
		if err := source.Reload(); err != nil {
			b.Fatal(err)
		}
		b.ReportAllocs()
		b.SetBytes(int64(len(data)))
		for i := 1; b.Loop(); i++ {
			b.StopTimer()
			if err := os.WriteFile(name, texts[i%2], 0o600); err != nil {
				b.Fatal(err)
			}
			b.StartTimer()
			if err := source.Reload(); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("L/parse", func(b *testing.B) {
		schemas := istio.Schemas()
		b.ReportAllocs()
		b.SetBytes(int64(len(data)))
		for b.Loop() {
			if _, err := manifest.ParseAll(schemas, data, manifest.Options{}); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkReload scans n objects in n/10 files again, without a change, or with one changed object
// in one file.
func BenchmarkReload(b *testing.B) {
	for _, n := range []int{1000, 10_000} {
		dir := b.TempDir()
		populate(b, dir, n, standardEntry)
		source := file.New(dir, memory.Make(istio.Schemas()), file.Options{})
		reload := func(b *testing.B) {
			b.Helper()
			if err := source.Reload(); err != nil {
				b.Fatal(err)
			}
		}
		reload(b)
		b.Run(fmt.Sprintf("unchanged/n=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				reload(b)
			}
		})
		b.Run(fmt.Sprintf("one-changed/n=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			name := filepath.Join(dir, "changing.yaml")
			for i := 0; b.Loop(); i++ {
				if err := os.WriteFile(name, []byte(standardEntry(n, fmt.Sprintf("v%d", i))), 0o600); err != nil {
					b.Fatal(err)
				}
				reload(b)
			}
		})
	}
}

// BenchmarkChangeToEvent rewrites one of n/10 files, without any debounce, and
// waits for the event of the store. L/notify only waits for the notification.
func BenchmarkChangeToEvent(b *testing.B) {
	for _, n := range []int{1000, 10_000} {
		b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) {
			dir := b.TempDir()
			populate(b, dir, n, standardEntry)
			cache := memory.NewController(memory.Make(istio.Schemas()))
			source := file.New(dir, cache, file.Options{Debounce: -1})
			if err := source.Reload(); err != nil {
				b.Fatal(err)
			}
			arrived := make(chan string, n+1)
			cache.RegisterEventHandler(istio.ServiceEntry, func(_, curr configstore.Config, _ configstore.Event) {
				arrived <- curr.Spec.(*networking.ServiceEntry).Hosts[0]
			})
			stop := make(chan struct{})
			var running sync.WaitGroup
			running.Go(func() { cache.Run(stop) })
			running.Go(func() { source.Run(stop) })
			change := func(i int) {
				name := filepath.Join(dir, "changing.yaml")
				host := fmt.Sprintf("v%d", i)
				if err := os.WriteFile(name+".tmp", []byte(standardEntry(n, host)), 0o600); err != nil {
					b.Fatal(err)
				}
				if err := os.Rename(name+".tmp", name); err != nil {
					b.Fatal(err)
				}
				for want := fmt.Sprintf("%s-%d.example.com", host, n); <-arrived != want; {
				}
			}
			change(-1)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				change(i)
			}
			b.StopTimer()
			close(stop)
			running.Wait()
		})
	}
	b.Run("L/notify", func(b *testing.B) {
		dir := b.TempDir()
		w, err := fsnotify.NewWatcher()
		if err != nil {
			b.Fatal(err)
		}
		defer func() {
			if err := w.Close(); err != nil {
				b.Error(err)
			}
		}()
		if err := w.Add(dir); err != nil {
			b.Fatal(err)
		}
		b.ReportAllocs()
		for b.Loop() {
			name := filepath.Join(dir, "changing.yaml")
			if err := os.WriteFile(name+".tmp", []byte(standardEntry(1, "v")), 0o600); err != nil {
				b.Fatal(err)
			}
			if err := os.Rename(name+".tmp", name); err != nil {
				b.Fatal(err)
			}
			for e := range w.Events {
				if e.Name == name {
					break
				}
			}
		}
	})
}
