// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"maps"
	"sync"
	"time"

	"github.com/pilotkit/pilotkit/internal/guard"
)

const (
	// maxLookups bounds how many lookups there are at once that have not ended.
	maxLookups = 1000
	// width is how many lookups a refresh makes at once.
	width = 8
	// proxyPatience and refreshPatience are how long a proxy that asks first, and a
	// refresh, wait for one lookup before they go on without it. patienceWhileLate
	// is the same while there is one for which this was not enough: then there may
	// be many.
	proxyPatience     = time.Second
	refreshPatience   = 100 * time.Millisecond
	patienceWhileLate = 20 * time.Millisecond
)

// lookups keeps what the program has answered about the keys that are in use. The
// host's code may take any time, and may never return: nobody waits for it long,
// and a key is looked up by one goroutine at a time, so that one
// that hangs costs one goroutine. The last answer stays until there is another.
type lookups[K comparable, V any] struct {
	// find asks the program. It gets the last answer.
	find  func(key K, last V) (V, error)
	equal func(a, b V) bool
	// failed is called when a failure of a key begins.
	failed func(K, error)
	// changed is called when there is something for take.
	changed func()
	// timeout is how long a lookup may take before it is a failure.
	timeout time.Duration

	mu      sync.Mutex
	entries map[K]*lookup[V]
	// running counts the lookups that have not ended, late those of them for which
	// a caller has waited until its timeout.
	running, late int
	// pending are the keys whose values have changed since they were told.
	pending map[K]struct{}
}

// lookup is a key that is in use.
type lookup[V any] struct {
	value V
	// answered: a lookup has ended, if only with an error. missed: somebody went on
	// before that.
	answered, missed bool
	// failure is the text of the failure that has begun.
	failure string
	// done is closed when the lookup in progress ends; nil: there is none. next is
	// the same of the one that has to follow.
	done, next chan struct{}
	late       bool
	// unused: to be forgotten when the lookup ends.
	unused bool
}

// get returns the value of a key. If it was never looked up, that is begun, and
// waited for; if that takes longer than proxyPatience it is the zero value for now.
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

// patience returns how long to wait for a lookup, usual if none is late. The caller
// holds mu.
func (l *lookups[K, V]) patience(usual time.Duration) time.Duration {
	if l.late > 0 {
		return patienceWhileLate
	}
	return usual
}

// await waits until done is closed and reports whether it is.
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

// refresh looks all keys up again that nobody is looking up; with again, those too,
// after that. It returns the lookups that it has begun, most of which have ended:
// for each it has waited no longer than refreshPatience.
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

// beginAgain begins a lookup for a refresh. It is not ok if there is none to wait
// for.
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

// begin begins a lookup, or with again makes another one follow that in progress.
// The caller holds mu, and calls what it returns without.
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
	err := errEnded // which runtime.Goexit leaves it at
	defer func() {
		if guard.Recovered(recover()) != nil {
			err = newPanicError()
		}
		overdue.Stop()
		l.end(key, e, done, value, err)
	}()
	value, err = l.find(key, last)
}

// overdue notes that a lookup, if it is still in progress, takes too long.
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

// end takes the answer of a lookup, and begins the one that has to follow.
func (l *lookups[K, V]) end(key K, e *lookup[V], done chan struct{}, value V, err error) {
	l.mu.Lock()
	fail, changed := func() {}, false
	if err != nil {
		fail = l.fail(key, e, err)
	} else {
		e.failure = ""
		if !l.equal(e.value, value) {
			// Who waits for the first answer is not told of it besides.
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
	close(done) // after all that who waits may want to see
}

// fail notes a failure, and returns what tells of it if it has just begun. The
// caller holds mu.
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

// retain forgets the keys that are no longer in use. Those that are being looked up
// are forgotten after that: until then nobody else looks them up.
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
