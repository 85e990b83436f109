// SPDX-License-Identifier: Apache-2.0

package file_test

import (
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/file"
	"github.com/pilotkit/pilotkit/configstore/istio"
)

// Neither the size nor the times of the file show that it has changed.
func TestChangeThatTimesDoNotShow(t *testing.T) {
	old := time.Now().Add(-time.Hour)
	rewrite := func(f *fixture, host string) {
		f.write("a.yaml", entry("a", host))
		f.must(os.Chtimes(f.path("a.yaml"), old, old))
	}
	w := watch(t, file.Options{}, func(f *fixture) { rewrite(f, "1") })
	w.await("add ns/a=1")
	rewrite(w.fixture, "2")
	w.await("update ns/a=2")

	// Together with something that needs all directories to be read.
	w = watch(t, file.Options{Debounce: 300 * time.Millisecond}, func(f *fixture) { rewrite(f, "1") })
	w.await("add ns/a=1")
	rewrite(w.fixture, "2")
	w.mkdir("new")
	w.await("update ns/a=2")

	f := newFixture(t, file.Options{})
	rewrite(f, "1")
	f.reload()
	rewrite(f, "2")
	f.reload()
	f.wantEvents("update ns/a=2")
}

// The times of a file that has just been changed prove nothing: they are too
// coarse. Here no notification is about the file either.
func TestRecentTimesAreNotTrusted(t *testing.T) {
	now := time.Now().Add(time.Hour)
	rewrite := func(f *fixture, host string) {
		f.write("../outside.yaml", entry("a", host))
		f.must(os.Chtimes(f.path("../outside.yaml"), now, now))
	}
	w := watch(t, file.Options{}, func(f *fixture) {
		rewrite(f, "1")
		f.symlink("../outside.yaml", "a.yaml")
	})
	w.await("add ns/a=1")
	rewrite(w.fixture, "2")
	w.mkdir("new")
	w.await("update ns/a=2")
}

// Two changes within the resolution of a file system's clock leave the same time
// and, here, the same size.
func TestSecondChangeInTheSameTick(t *testing.T) {
	for soon := false; !soon; { // or else the time of the file is an old one already
		tick := time.Now()
		rewrite := func(f *fixture, host string) {
			f.write("../outside.yaml", entry("a", host))
			f.must(os.Chtimes(f.path("../outside.yaml"), tick, tick))
		}
		w := watch(t, file.Options{}, func(f *fixture) {
			rewrite(f, "1")
			f.symlink("../outside.yaml", "a.yaml")
		})
		w.await("add ns/a=1")
		rewrite(w.fixture, "2")
		if soon = time.Since(tick) < time.Second; soon {
			w.mkdir("new") // has the directories read, and nothing says that the file changed
			w.await("update ns/a=2")
		}
	}
}

// A rescan finds changes without a notification.
func TestRescan(t *testing.T) {
	w := watch(t, file.Options{Rescan: 20 * time.Millisecond}, func(f *fixture) {
		f.write("../outside.yaml", entry("a", "1"))
		f.symlink("../outside.yaml", "a.yaml")
	})
	w.await("add ns/a=1")
	w.write("../outside.yaml", entry("a", "2"))
	w.await("update ns/a=2")
}

func TestReloadBesideRun(t *testing.T) {
	w := watch(t, file.Options{}, func(f *fixture) { f.write("a.yaml", entry("a", "0")) })
	w.await("add ns/a=0")
	var reloads sync.WaitGroup
	for range 4 {
		reloads.Go(func() {
			for range 20 {
				if err := w.source.Reload(); err != nil {
					t.Error(err)
				}
				w.source.Errors()
			}
		})
	}
	for i := range 20 {
		w.write("sub/a.yaml", entry("s", string(rune('a'+i))))
	}
	reloads.Wait()
	w.must(w.source.Reload())
	if !slices.ContainsFunc(w.store.List(istio.ServiceEntry, "ns"), func(c *configstore.Config) bool {
		return describe(*c) == "ns/s=t"
	}) {
		t.Error("Reload returned before the store held the last write")
	}
	w.write("sub/a.yaml", entry("s", "end"))
	w.await("update ns/s=end")
}

func TestHasSyncedAfterFirstScan(t *testing.T) {
	f := newFixture(t, file.Options{})
	f.write("a.yaml", docs(entry("a", "one"), unknownField("b")))
	if f.source.HasSynced() {
		t.Error("HasSynced before anything was read")
	}
	f.cache.Drain()
	if f.cache.HasSynced() {
		t.Error("the cache claims to be synced before its source is")
	}
	f.reload()
	f.cache.Drain()
	if !f.cache.HasSynced() {
		t.Error("the cache is not synced after a complete scan")
	}
	if !f.source.HasSynced() {
		t.Error("HasSynced is false after a complete scan")
	}
}

func TestRunTwicePanics(t *testing.T) {
	f := newFixture(t, file.Options{})
	stop := make(chan struct{})
	close(stop)
	f.source.Run(stop)
	defer func() {
		if recover() == nil {
			t.Error("second Run did not panic")
		}
	}()
	f.source.Run(stop)
}
