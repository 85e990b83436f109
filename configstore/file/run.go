// SPDX-License-Identifier: Apache-2.0

package file

import "time"

// Run loads the directory, then watches it and keeps the store up to date, until
// stop is closed. It returns when the reload in progress has ended and
// everything that it started has stopped. While the directory cannot be read it
// goes on trying. Run may be called once; a second call panics.
func (s *Source) Run(stop <-chan struct{}) {
	if s.ran.Swap(true) {
		panic("file: Run of a Source was called twice")
	}
	w := newWatcher(s.dir, s.opts.Debounce)
	s.turn <- struct{}{}
	s.watcher = w
	<-s.turn
	defer func() {
		s.turn <- struct{}{}
		s.watcher = nil
		s.mu.Lock()
		s.last.watched = false
		s.mu.Unlock()
		w.close()
		<-s.turn
	}()
	s.loop(w, stop)
}

func (s *Source) loop(w *watcher, stop <-chan struct{}) {
	unfinished := time.NewTimer(time.Hour)
	unfinished.Stop()
	defer unfinished.Stop()
	defer w.quiet.Stop()
	var rescan <-chan time.Time
	if s.opts.Rescan > 0 {
		ticker := time.NewTicker(s.opts.Rescan)
		defer ticker.Stop()
		rescan = ticker.C
	}
	// reload handles the pending notifications and the scan in why. There may be nothing to do, if
	// a Reload has already handled the notifications that woke the watcher.
	reload := func(why scan) {
		sc := w.take()
		sc.full, sc.walk = sc.full || why.full, sc.walk || why.walk
		if (sc.full || sc.walk || len(sc.dirty) > 0) && s.reload(sc) {
			unfinished.Reset(s.completion)
		}
	}
	for why := (scan{full: true}); ; {
		reload(why)
		select {
		case <-stop:
			return
		case <-w.due:
			why = scan{}
		case <-unfinished.C:
			why = scan{walk: true}
		case <-rescan:
			why = scan{full: true}
		}
	}
}

// reload is Reload for Run, which reports errors but never gives up.
func (s *Source) reload(sc scan) (again bool) {
	s.turn <- struct{}{}
	defer func() { <-s.turn }()
	again, err := s.load(sc)
	return again && err == nil
}
