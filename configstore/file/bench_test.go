// SPDX-License-Identifier: Apache-2.0

package file_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

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

// BenchmarkLoad loads n objects in n/10 files into an empty store. L/parse only
// parses the same files.
func BenchmarkLoad(b *testing.B) {
	for _, n := range []int{1000, 10_000} {
		dir := b.TempDir()
		populate(b, dir, n, standardEntry)
		b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := file.New(dir, memory.Make(istio.Schemas()), file.Options{}).Reload(); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("L/parse/n=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			names, err := filepath.Glob(filepath.Join(dir, "*", "*.yaml"))
			if err != nil {
				b.Fatal(err)
			}
			schemas := istio.Schemas()
			for b.Loop() {
				for _, name := range names {
					data, err := os.ReadFile(name)
					if err != nil {
						b.Fatal(err)
					}
					if _, err := manifest.ParseAll(schemas, data, manifest.Options{}); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}

// BenchmarkReload looks at n objects in n/10 files again: nothing has changed, or
// one object in one file.
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
