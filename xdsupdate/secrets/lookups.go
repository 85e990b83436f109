// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"maps"
	"sync"
	"time"

	"github.com/pilotkit/pilotkit/internal/guard"
)

const (
	// maxLookups is the maximum number of lookups in progress.
	maxLookups = 1000
	// width is the number of lookups that a refresh makes at once.
	width = 8
	// proxyPatience bounds the wait of a proxy's first subscription for a lookup, refreshPatience
	// that of a refresh. patienceWhileLate replaces both while another lookup is late, because then
	// many may be.
	proxyPatience     = time.Second
	refreshPatience   = 100 * time.Millisecond
	patienceWhileLate = 20 * time.Millisecond
)

// lookups caches the host's last answers for the keys in use. Because the host's code may take any
// time, and may never return, callers wait for a bounded time only, and at most one goroutine at a
// time looks up a key. A call that never returns costs one goroutine. The last answer stays until
// there is a new one.
type lookups[K comparable, V any] struct {
	// find calls the host. It gets the last answer.
	find  func(key K, last V) (V, error)
	equal func(a, b V) bool
	// failed is called when a key begins to fail.
	failed func(K, error)
	// changed is called when take has new keys.
	changed func()
	// timeout is the time after which a lookup counts as a failure.
	timeout time.Duration

	mu      sync.Mutex
	entries map[K]*lookup[V]
	// running is the number of lookups in progress. late is the number of lookups among them that
	// some caller stopped waiting for.
	running, late int
	// pending are the keys whose values have changed since the last take.
	pending map[K]struct{}
}

// lookup is the state of a key in use.
type lookup[V any] struct {
	value V
	// answered is set when the first lookup has ended, even with an error. missed is set if a
	// caller stopped waiting before that.
	answered, missed bool
	// failure is the text of the current failure, "" if there is none.
	failure string
	// done is closed when the lookup in progress ends, nil if there is none. next is the done
	// channel of the lookup that has to follow, nil if there is none.
	done, next chan struct{}
	late       bool
	// unused is set if the key has to be dropped when the lookup ends.
	unused bool
}

// get returns the value of a key. The first get of a key begins a lookup and waits for it, at most
// proxyPatience. If the lookup takes longer, get returns the zero value.
func (l *lookups[K, V]) get(key K) V {
	l.mu.Lock()
	e := l.entries[key]
	if e == nil {
		e = &lookup[V]{}
		l.entries[key] = e
	}
	e.unused = false
	if e.answered {
		defer l.mu.Unlock()
		return e.value
	}
	fail := l.begin(key, e, false)
	done, late, wait := e.done, e.late, l.patience(proxyPatience)
	l.mu.Unlock()
	fail()
	if done != nil && !late {
		await(done, wait, nil)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !e.answered {
		e.missed = true
		l.setLate(e, e.done != nil)
	}
	return e.value
}

// patience returns the time to wait for a lookup: usual if no lookup is late. The caller holds mu.
func (l *lookups[K, V]) patience(usual time.Duration) time.Duration {
	if l.late > 0 {
		return patienceWhileLate
	}
	return usual
}

// await waits until done is closed, for at most the given time, and reports whether it is closed.
func await(done <-chan struct{}, wait time.Duration, stop <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
	}
	if wait <= 0 {
		return false
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
	case <-stop:
	}
	return false
}

// begun is a lookup that a refresh has begun.
type begun[V any] struct {
	entry *lookup[V]
	done  <-chan struct{}
	at    time.Time
}

// refresh looks up all keys that have no lookup in progress. With again set, the other keys are
// looked up once more after the lookup in progress. It returns the lookups that it began. Most of
// them have ended, because it waits up to refreshPatience for each.
func (l *lookups[K, V]) refresh(again bool, stop <-chan struct{}) []begun[V] {
	l.mu.Lock()
	entries := maps.Clone(l.entries)
	l.mu.Unlock()
	var all []begun[V]
	for key, e := range entries {
		if len(all) >= width {
			l.await(all[len(all)-width], stop)
		}
		if isClosed(stop) {
			return all
		}
		if b, ok := l.beginAgain(key, e, again); ok {
			all = append(all, b)
		}
	}
	for _, b := range all[max(0, len(all)-width):] {
		l.await(b, stop)
	}
	return all
}

// beginAgain begins a lookup for a refresh. It returns false if there is no lookup to wait for.
func (l *lookups[K, V]) beginAgain(key K, e *lookup[V], again bool) (begun[V], bool) {
	l.mu.Lock()
	busy := e.done != nil
	fail := func() {}
	if l.entries[key] == e && (again || !busy) {
		fail = l.begin(key, e, again)
	}
	b := begun[V]{entry: e, done: e.done, at: time.Now()}
	if e.next != nil {
		b.done = e.next
	}
	ok := b.done != nil && !e.late && (again || !busy)
	l.mu.Unlock()
	fail()
	return b, ok
}

// await waits for a lookup that a refresh has begun.
func (l *lookups[K, V]) await(b begun[V], stop <-chan struct{}) {
	l.mu.Lock()
	wait := l.patience(refreshPatience) - time.Since(b.at)
	l.mu.Unlock()
	if await(b.done, wait, stop) || isClosed(stop) {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.setLate(b.entry, b.entry.done != nil && !isClosed(b.done))
}

// begin begins a lookup. If one is in progress and again is set, another one follows it. The caller
// holds mu, and calls fail after releasing it.
func (l *lookups[K, V]) begin(key K, e *lookup[V], again bool) (fail func()) {
	switch {
	case e.done != nil:
		if again && e.next == nil {
			e.next = make(chan struct{})
		}
	case l.running >= maxLookups:
		return l.fail(key, e, errTooMany)
	default:
		l.running++
		e.done = make(chan struct{})
		go l.work(key, e, e.done, e.value)
	}
	return func() {}
}

// work is the goroutine of a lookup.
func (l *lookups[K, V]) work(key K, e *lookup[V], done chan struct{}, last V) {
	overdue := time.AfterFunc(l.timeout, func() { l.overdue(key, e, done) })
	var value V
	err := errEnded // the error if find calls runtime.Goexit
	defer func() {
		if guard.Recovered(recover()) != nil {
			err = newPanicError()
		}
		overdue.Stop()
		l.end(key, e, done, value, err)
	}()
	value, err = l.find(key, last)
}

// overdue records a failure if the lookup is still in progress.
func (l *lookups[K, V]) overdue(key K, e *lookup[V], done chan struct{}) {
	l.mu.Lock()
	fail := func() {}
	if e.done == done {
		l.setLate(e, true)
		fail = l.fail(key, e, errOverdue)
	}
	l.mu.Unlock()
	fail()
}

// end stores the result of a lookup, and begins the lookup that has to follow.
func (l *lookups[K, V]) end(key K, e *lookup[V], done chan struct{}, value V, err error) {
	l.mu.Lock()
	fail, changed := func() {}, false
	if err != nil {
		fail = l.fail(key, e, err)
	} else {
		e.failure = ""
		if !l.equal(e.value, value) {
			// A caller that is still waiting for the first answer needs no notification.
			changed = e.answered || e.missed
			e.value = value
		}
	}
	if changed {
		l.pending[key] = struct{}{}
	}
	e.answered = true
	l.setLate(e, false)
	e.done, e.next = e.next, nil
	l.running--
	switch {
	case e.unused:
		if e.done != nil {
			close(e.done)
		}
		l.forget(key)
	case e.done != nil:
		l.running++
		go l.work(key, e, e.done, e.value)
	}
	l.mu.Unlock()
	fail()
	if changed {
		l.changed()
	}
	close(done) // last, because waiting callers read the state above
}

// fail records a failure. The function that it returns calls failed if the failure is new. The
// caller holds mu, and calls the function after releasing it.
func (l *lookups[K, V]) fail(key K, e *lookup[V], err error) func() {
	text := err.Error()
	if e.failure == text {
		return func() {}
	}
	e.failure = text
	return func() { l.failed(key, err) }
}

func (l *lookups[K, V]) setLate(e *lookup[V], late bool) {
	if late != e.late {
		if e.late = late; late {
			l.late++
		} else {
			l.late--
		}
	}
}

// take returns the keys whose values have changed since the last call.
func (l *lookups[K, V]) take() map[K]struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := l.pending
	l.pending = make(map[K]struct{})
	return out
}

// retain drops the keys that are not in use. A key with a lookup in progress is dropped when the
// lookup ends, so that there is never a second one at the same time.
func (l *lookups[K, V]) retain(used func(K) bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for key, e := range l.entries {
		if e.unused = !used(key); e.unused && e.done == nil {
			l.forget(key)
		}
	}
}

func (l *lookups[K, V]) forget(key K) {
	delete(l.entries, key)
	delete(l.pending, key)
}

func isClosed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}
