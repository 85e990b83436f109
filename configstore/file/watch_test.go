// SPDX-License-Identifier: Apache-2.0

package file_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/file"
	"github.com/pilotkit/pilotkit/configstore/istio"
)

// maxWait bounds how long a test waits for an event that must come.
const maxWait = time.Minute

// watched is a fixture whose source and cache run.
type watched struct {
	*fixture
	arrived chan string
	seen    []string
}

// watch starts the source of a fixture. prepare sees the directory before. What looks
// unfinished is not taken for complete, however long the machine takes for the rest.
func watch(t *testing.T, opts file.Options, prepare func(f *fixture)) *watched {
	t.Helper()
	if opts.Rescan == 0 {
		opts.Rescan = -1
	}
	w := &watched{fixture: newFixture(t, opts), arrived: make(chan string, 10000)}
	w.cache.RegisterEventHandler(istio.ServiceEntry, func(_, curr configstore.Config, event configstore.Event) {
		w.arrived <- event.String() + " " + describe(curr)
	})
	w.source.SetCompletion(time.Hour)
	prepare(w.fixture)
	stop := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() { w.cache.Run(stop) })
	running.Go(func() { w.source.Run(stop) })
	t.Cleanup(func() {
		close(stop)
		running.Wait()
	})
	return w
}

// await returns when an event has arrived; it fails the test if one of the
// unwanted ones, by prefix, comes before.
func (w *watched) await(want string, unwanted ...string) {
	w.Helper()
	timeout := time.NewTimer(maxWait)
	defer timeout.Stop()
	for {
		select {
		case got := <-w.arrived:
			w.seen = append(w.seen, got)
			if got == want {
				return
			}
			for _, u := range unwanted {
				if strings.HasPrefix(got, u) {
					w.Fatalf("got %q before %q", got, want)
				}
			}
		case <-timeout.C:
			w.Fatalf("no %q; events so far: %q; errors: %q", want, w.seen, w.errors())
		}
	}
}

// awaitBoth is await for two events in any order: a look that begins before a change
// may see a part of it.
func (w *watched) awaitBoth(one, other string, unwanted ...string) {
	w.Helper()
	from := len(w.seen)
	w.await(one, unwanted...)
	if !slices.Contains(w.seen[from:], other) {
		w.await(other, unwanted...)
	}
}

// awaitHost returns when an object has a host, by an Add or an Update.
func (w *watched) awaitHost(name, host string) {
	w.Helper()
	timeout := time.NewTimer(maxWait)
	defer timeout.Stop()
	for {
		select {
		case got := <-w.arrived:
			w.seen = append(w.seen, got)
			if got == "add ns/"+name+"="+host || got == "update ns/"+name+"="+host {
				return
			}
		case <-timeout.C:
			w.Fatalf("%s never had host %s; events so far: %q; errors: %q", name, host, w.seen, w.errors())
		}
	}
}

// marker makes sure that everything written before has been looked at.
func (w *watched) marker(name string) {
	w.Helper()
	w.write("marker-"+name+".yaml", entry("marker-"+name, name))
	w.await("add ns/marker-"+name+"="+name, "delete")
}

func TestWatchFollowsFiles(t *testing.T) {
	w := watch(t, file.Options{}, func(f *fixture) { f.write("a.yaml", entry("a", "one")) })
	w.await("add ns/a=one")
	w.write("a.yaml", entry("a", "two"))
	w.await("update ns/a=two")
	w.write("b.json", `{"apiVersion": "networking.istio.io/v1", "kind": "ServiceEntry", "metadata": {"name": "b", "namespace": "ns"},
		"spec": {"hosts": ["b"], "resolution": "NONE", "ports": [{"number": 1, "name": "tcp"}]}}`)
	w.await("add ns/b=b")
	w.remove("b.json")
	w.await("delete ns/b=b")
	w.rename("a.yaml", "a.yaml.bak")
	w.await("delete ns/a=two")
	w.rename("a.yaml.bak", "c.yml")
	w.await("add ns/a=two")
}

func TestWatchAtomicRename(t *testing.T) {
	w := watch(t, file.Options{}, func(f *fixture) { f.write("a.yaml", entry("a", "0")) })
	w.await("add ns/a=0")
	for _, host := range []string{"1", "2", "3"} {
		w.write(".a.yaml.tmp", entry("a", host))
		w.rename(".a.yaml.tmp", "a.yaml")
		w.await("update ns/a="+host, "delete")
	}
	w.write("../outside", entry("a", "4"))
	w.rename("../outside", "a.yaml")
	w.await("update ns/a=4", "delete")
}

// Editors move the old file away and write a new one, or write in place.
func TestWatchEditorSave(t *testing.T) {
	const debounce = 500 * time.Millisecond
	for saved := false; !saved; {
		w := watch(t, file.Options{Debounce: debounce}, func(f *fixture) { f.write("a.yaml", entry("a", "0")) })
		w.await("add ns/a=0")
		start := time.Now()
		w.write("4913", "")
		w.remove("4913")
		w.rename("a.yaml", "a.yaml~")
		w.write("a.yaml", entry("a", "1"))
		w.remove("a.yaml~")
		// Else the source may have seen that the file was away: once more.
		if saved = time.Since(start) < debounce/5; saved {
			w.await("update ns/a=1", "delete")
		}
	}
}

// A file that is written in pieces ends in the right state, and its intermediate states delete
// nothing.
func TestWatchPartialWrite(t *testing.T) {
	w := watch(t, file.Options{Debounce: -1}, func(f *fixture) { f.write("a.yaml", entry("a", "0")) })
	w.await("add ns/a=0")
	f, err := os.Create(w.path("a.yaml"))
	w.must(err)
	w.marker("emptied")
	text := entry("a", "1")
	for i, cut := range []int{30, 70, 110, len(text)} {
		from := []int{0, 30, 70, 110}[i]
		_, err := f.WriteString(text[from:cut])
		w.must(err)
		if cut < len(text) {
			w.marker("piece" + string(rune('a'+i)))
		}
	}
	w.must(f.Close())
	w.await("update ns/a=1", "delete")

	// Created empty and filled later.
	f, err = os.Create(w.path("b.yaml"))
	w.must(err)
	w.marker("created")
	w.wantErrors()
	_, err = f.WriteString(entry("b", "1"))
	w.must(err)
	w.must(f.Close())
	w.await("add ns/b=1", "delete")
}

// A file that stays empty is empty.
func TestWatchEmptiedFile(t *testing.T) {
	w := watch(t, file.Options{}, func(f *fixture) { f.write("a.yaml", entry("a", "0")) })
	w.await("add ns/a=0")
	w.source.SetCompletion(time.Second)
	w.write("a.yaml", "")
	w.await("delete ns/a=0")
}

func TestWatchDirectories(t *testing.T) {
	w := watch(t, file.Options{}, func(f *fixture) { f.write("a.yaml", entry("a", "0")) })
	w.await("add ns/a=0")
	w.write("one/two/three/b.yaml", entry("b", "0"))
	w.await("add ns/b=0")
	w.write("one/two/three/b.yaml", entry("b", "1"))
	w.await("update ns/b=1")
	// Moved, its files have other paths and are watched under these.
	w.rename("one/two", "one/deux")
	w.write("one/deux/three/b.yaml", entry("b", "2"))
	w.await("update ns/b=2", "delete")
	w.write("one/deux/three/b.yaml", entry("b", "3"))
	w.await("update ns/b=3", "delete")
	w.rename("one/deux", "../elsewhere")
	w.await("delete ns/b=3")
	w.write("one/deux/b.yaml", entry("b", "4"))
	w.await("add ns/b=4")
	w.write("../elsewhere/three/b.yaml", entry("b", "outside"))
	w.write("one/deux/b.yaml", entry("b", "5"))
	w.await("update ns/b=5", "update ns/b=outside")
}

// A file is written by another name than the links to it have.
func TestWatchLinkedFile(t *testing.T) {
	w := watch(t, file.Options{}, func(f *fixture) {
		f.write("a.yaml", entry("a", "0"))
		f.symlink("a.yaml", "0.yaml") // the first by path
		f.write("b.txt", entry("b", "0"))
		f.mkdir("sub")
		f.symlink("../b.txt", "sub/b.yaml")
	})
	w.awaitBoth("add ns/a=0", "add ns/b=0")
	w.write("a.yaml", entry("a", "1"))
	w.await("update ns/a=1", "delete")
	w.write("b.txt", entry("b", "1"))
	w.await("update ns/b=1", "delete")
}

// The directory of the source comes, goes and comes again.
func TestWatchRecreatedDirectory(t *testing.T) {
	w := watch(t, file.Options{}, func(f *fixture) { f.remove(".") })
	w.write("a.yaml", entry("a", "0"))
	w.await("add ns/a=0")
	for _, host := range []string{"1", "2"} {
		w.remove(".")
		w.mkdir("../config")
		w.write("a.yaml", entry("a", host))
		w.await("update ns/a="+host, "delete")
	}
	w.rename(".", "../away")
	w.mkdir(".")
	w.write("b.yaml", entry("b", "0"))
	w.await("add ns/b=0", "delete")
	w.marker("incomplete")
	w.source.SetCompletion(time.Second)
	w.mkdir("new") // has the directories read
	w.await("delete ns/a=2")
	w.write("b.yaml", entry("b", "1"))
	w.await("update ns/b=1")
}

// A directory that takes the place of another may well have its inode, which
// does not make it watched.
func TestWatchRecreatedSubdirectory(t *testing.T) {
	w := watch(t, file.Options{Debounce: 5 * time.Millisecond}, func(f *fixture) { f.write("sub/a.yaml", entry("a", "start")) })
	w.await("add ns/a=start")
	for i := range 10 {
		w.remove("sub")
		w.mkdir("sub")
		w.write("sub/b.yaml", entry("b", fmt.Sprintf("first%d", i)))
		w.awaitHost("b", fmt.Sprintf("first%d", i))
		w.write("sub/b.yaml", entry("b", fmt.Sprintf("second%d", i)))
		w.awaitHost("b", fmt.Sprintf("second%d", i))
	}
}

// publishConfigMap does what kubelet does to show a new state of a ConfigMap.
func (f *fixture) publishConfigMap(version string, files map[string]string) {
	f.Helper()
	previous, err := os.Readlink(f.path("..data"))
	for name, text := range files {
		f.write("..v"+version+"/"+name, text)
	}
	f.symlink("..v"+version, "..data_tmp")
	f.rename("..data_tmp", "..data")
	for name := range files {
		top, _, _ := strings.Cut(name, "/")
		if _, err := os.Lstat(f.path(top)); err != nil {
			f.symlink("..data/"+top, top)
		}
	}
	if err == nil {
		f.remove(previous)
	}
}

func TestWatchConfigMap(t *testing.T) {
	w := watch(t, file.Options{}, func(f *fixture) {
		f.publishConfigMap("1", map[string]string{"a.yaml": entry("a", "1"), "sub/b.yaml": entry("b", "1")})
	})
	w.await("add ns/a=1")
	w.await("add ns/b=1")
	w.wantErrors()
	for _, v := range []string{"2", "3"} {
		w.publishConfigMap(v, map[string]string{"a.yaml": entry("a", v), "sub/b.yaml": entry("b", v)})
		w.awaitBoth("update ns/a="+v, "update ns/b="+v, "delete")
		w.wantErrors()
	}
	w.publishConfigMap("4", map[string]string{"sub/b.yaml": entry("b", "4")})
	w.remove("a.yaml")
	w.await("delete ns/a=3")
	w.publishConfigMap("5", map[string]string{"sub/b.yaml": entry("b", "5")})
	w.await("update ns/b=5", "delete")
	w.wantErrors()
}

// The directory itself may be a link that is changed, as git-sync does.
func TestWatchDirectoryIsALink(t *testing.T) {
	w := watch(t, file.Options{}, func(f *fixture) {
		f.remove(".")
		f.write("../v1/a.yaml", entry("a", "1"))
		f.symlink("v1", ".")
	})
	w.await("add ns/a=1")
	w.write("../v2/a.yaml", entry("a", "2"))
	w.symlink("v2", "../tmp")
	w.rename("../tmp", ".")
	w.await("update ns/a=2", "delete")
	w.write("../v2/a.yaml", entry("a", "3"))
	w.await("update ns/a=3", "delete")
}

// A burst is one change, however many notifications it makes.
func TestWatchCoalescesBursts(t *testing.T) {
	const writes, debounce = 200, 500 * time.Millisecond
	w := watch(t, file.Options{Debounce: debounce}, func(f *fixture) { f.write("a.yaml", entry("a", "start")) })
	w.await("add ns/a=start")
	start := time.Now()
	for i := range writes {
		w.write("a.yaml", entry("a", "h"+string(rune('a'+i%26))))
	}
	w.write("a.yaml", entry("a", "end"))
	w.await("update ns/a=end")
	// Only a pause of the writer makes another one.
	took := time.Since(start)
	if updates, most := len(w.seen)-1, 1+int(took/(debounce/5)); updates > most {
		t.Errorf("%d updates for %d writes in %v, want at most %d", updates, writes, took, most)
	}
}

// A change of a single file is handled earlier than a burst; a removal is not, because the file may
// be about to be replaced.
func TestWatchSingleFileWaitsLess(t *testing.T) {
	const long, short = 10 * time.Second, 500 * time.Millisecond
	prepare := func(f *fixture) { f.write("a.yaml", entry("a", "0")) }
	w := watch(t, file.Options{Debounce: long}, prepare)
	w.await("add ns/a=0")
	start := time.Now()
	w.write("a.yaml", entry("a", "1"))
	w.await("update ns/a=1")
	if took := time.Since(start); took >= long {
		t.Errorf("a change of one file took %v, want less than %v", took, long)
	}

	w = watch(t, file.Options{Debounce: short}, prepare)
	w.await("add ns/a=0")
	start = time.Now()
	w.remove("a.yaml")
	w.await("delete ns/a=0")
	if took := time.Since(start); took < short {
		t.Errorf("a removal took %v, want at least %v", took, short)
	}
}

// TestFreshness: a watched source is fresh, and stale while the directory is missing; after Run the
// freshness is unknown.
func TestFreshness(t *testing.T) {
	var source *file.Source
	t.Run("running", func(t *testing.T) {
		w := watch(t, file.Options{}, func(f *fixture) { f.write("a.yaml", entry("a", "one")) })
		source = w.source
		w.await("add ns/a=one")
		is := func(want configstore.Freshness) {
			t.Helper()
			ctx, cancel := context.WithTimeout(t.Context(), maxWait)
			defer cancel()
			again := time.NewTicker(time.Millisecond)
			defer again.Stop()
			for source.SourceState().Freshness != want && ctx.Err() == nil {
				select {
				case <-again.C:
				case <-ctx.Done():
				}
			}
			if s := source.SourceState(); s.Freshness != want || s.StaleSince.IsZero() != (want != configstore.Stale) || s.Content.IsZero() {
				t.Fatalf("state %+v, want that it is %v", s, want)
			}
		}
		is(configstore.Fresh)
		w.rename(".", "../away")
		is(configstore.Stale)
		w.rename("../away", ".")
		is(configstore.Fresh)
	})
	if s := source.SourceState(); s.Freshness != configstore.FreshnessUnknown || !s.Synced {
		t.Errorf("state %+v after Run", s)
	}
}
