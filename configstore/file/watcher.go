// SPDX-License-Identifier: Apache-2.0

package file

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
)

// maxDelay is how many times Options.Debounce a burst of notifications may delay
// a reload.
const maxDelay = 10

// singleShare is the part of Options.Debounce that the change of a single file
// waits: programs write a file by several calls, one right after the other.
const singleShare = 5

// watcher collects notifications about a directory and everything below it, and
// about the nearest directory above it that exists, which notifies of its
// creation.
type watcher struct {
	// root is absolute if possible, dir is how the program wrote it.
	root, dir string
	debounce  time.Duration
	// due is signalled when the pending notifications should be handled, because more are unlikely
	// to follow soon. quiet signals it.
	due   chan struct{}
	quiet *time.Timer

	// These belong to the reload in progress.
	notify *fsnotify.Watcher
	pumped chan struct{}
	// dirs are the watched directories by absolute path. A path that leads to
	// another directory than before is why their identity is kept.
	dirs map[string]fs.FileInfo
	// seen are the directories that the current walk came across, stale is set
	// if one of them is not the one that is watched.
	seen    map[string]bool
	stale   bool
	refused map[string]error
	// rootLost is set if the root was removed, if only for a moment.
	rootLost bool

	mu    sync.Mutex
	noted scan
	// since is the time of the first pending notification, zero if there is none.
	since time.Time
	// gone: one of the notifications was that something was removed or renamed.
	gone bool
}

func newWatcher(dir string, debounce time.Duration) *watcher {
	root, err := filepath.Abs(dir)
	if err != nil {
		root = filepath.Clean(dir)
	}
	w := &watcher{root: root, dir: dir, debounce: debounce, due: make(chan struct{}, 1)}
	w.quiet = time.AfterFunc(time.Hour, w.wake)
	w.quiet.Stop()
	return w
}

// take returns the notifications since its last call. The scan is full if notifications may have
// been lost.
func (w *watcher) take() scan {
	w.mu.Lock()
	defer w.mu.Unlock()
	noted := w.noted
	w.noted, w.since, w.gone = scan{}, time.Time{}, false
	return noted
}

// begin starts a walk.
func (w *watcher) begin() {
	w.seen, w.stale = map[string]bool{}, false
	if w.notify == nil {
		w.open()
	}
	if w.notify != nil {
		// A directory that was removed is no longer watched, even if another
		// one, perhaps with the same inode, has taken its place since.
		watched := w.notify.WatchList()
		slices.Sort(watched)
		for path := range w.dirs {
			if _, ok := slices.BinarySearch(watched, path); !ok {
				w.stale = true
				w.rootLost = w.rootLost || path == w.root
			}
		}
	}
	// The nearest directory above the root that exists.
	for dir := filepath.Dir(w.root); ; dir = filepath.Dir(dir) {
		if info, err := os.Stat(dir); err == nil {
			w.addPath(dir, info)
			return
		}
		if dir == filepath.Dir(dir) {
			return
		}
	}
}

// add watches a directory, named relative to the root.
func (w *watcher) add(name string, info fs.FileInfo) {
	w.addPath(filepath.Join(w.root, filepath.FromSlash(name)), info)
}

func (w *watcher) addPath(path string, info fs.FileInfo) {
	w.seen[path] = true
	if have, ok := w.dirs[path]; ok {
		w.stale = w.stale || !os.SameFile(have, info)
		return
	}
	if w.notify == nil {
		return
	}
	if err := w.notify.Add(path); err != nil {
		w.refused[path] = err
		return
	}
	delete(w.refused, path)
	w.dirs[path] = info
}

// end ends a walk. It returns false if the walk has to be repeated because a directory has been
// removed or replaced: the kernel watches the directory that was at a path, not the path itself,
// and that directory may live on elsewhere, so all watches have to be renewed.
func (w *watcher) end() bool {
	for path := range w.dirs {
		w.stale = w.stale || !w.seen[path]
	}
	if !w.stale {
		return true
	}
	w.close()
	return false
}

// open starts to collect notifications.
func (w *watcher) open() {
	w.dirs, w.refused = map[string]fs.FileInfo{}, map[string]error{}
	notify, err := fsnotify.NewWatcher()
	if err != nil {
		w.refused[w.root] = err
		return
	}
	w.notify, w.pumped = notify, make(chan struct{})
	go w.pump(notify, w.pumped)
}

// close ends the collecting and waits for its end.
func (w *watcher) close() {
	w.dirs = nil
	if w.notify == nil {
		return
	}
	// The error is about a file descriptor that is no longer in use.
	_ = w.notify.Close()
	<-w.pumped
	w.notify = nil
}

// pump takes notifications as fast as they come, so that the kernel's queue does
// not overflow during a reload.
func (w *watcher) pump(notify *fsnotify.Watcher, done chan<- struct{}) {
	defer close(done)
	for {
		select {
		case e, ok := <-notify.Events:
			if !ok {
				return
			}
			w.note(e)
		case _, ok := <-notify.Errors:
			if !ok {
				return
			}
			// Most likely an overflow: anything may have changed.
			w.noteAll()
		}
	}
}

// note records a notification if it concerns the directory.
func (w *watcher) note(e fsnotify.Event) {
	path := e.Name
	name, below := strings.CutPrefix(path, w.root+string(filepath.Separator))
	above := path == w.root || strings.HasPrefix(w.root, strings.TrimSuffix(path, string(filepath.Separator))+string(filepath.Separator))
	base := filepath.Base(path)
	if !above && (!below || strings.HasPrefix(base, ".") && !strings.HasPrefix(base, "..")) {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if below {
		if w.noted.dirty == nil {
			w.noted.dirty = map[string]bool{}
		}
		w.noted.dirty[filepath.ToSlash(name)] = true
		w.gone = w.gone || e.Has(fsnotify.Remove) || e.Has(fsnotify.Rename)
	} else {
		w.noted.walk = true
	}
	w.awaitQuietLocked()
}

func (w *watcher) noteAll() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.noted.full = true
	w.awaitQuietLocked()
}

// awaitQuietLocked wakes the loop after a quiet period, or when a burst has delayed it for too
// long. The period is short if the only notification is a write to one file, because further ones
// are unlikely. It is long otherwise: a removed file may be about to be replaced, and several
// changes may belong together.
func (w *watcher) awaitQuietLocked() {
	now := time.Now()
	if w.since.IsZero() {
		w.since = now
	}
	wait := w.debounce
	if len(w.noted.dirty) == 1 && !w.noted.full && !w.noted.walk && !w.gone {
		wait /= singleShare
	}
	if wait = min(wait, w.since.Add(maxDelay*w.debounce).Sub(now)); wait <= 0 {
		w.wake()
		return
	}
	w.quiet.Reset(wait)
	select {
	case <-w.due: // the loop was busy when it had been quiet before
	default:
	}
}

func (w *watcher) wake() {
	select {
	case w.due <- struct{}{}:
	default:
	}
}

// failures returns the directories that cannot be watched. Rescans find the changes there.
func (w *watcher) failures() []*Error {
	var out []*Error
	for path, err := range w.refused {
		if !w.seen[path] {
			continue
		}
		if name, ok := strings.CutPrefix(path, w.root); ok {
			path = filepath.Join(w.dir, name)
		}
		out = append(out, &Error{File: path, Err: fmt.Errorf("watch: %w", err)})
	}
	return out
}
