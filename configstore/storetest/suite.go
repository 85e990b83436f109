// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pilotkit/pilotkit/configstore"
)

// suite is one check at work on one subject.
type suite struct {
	testing.TB
	check   check
	subject Subject
	store   configstore.ConfigStore
	writer  configstore.ConfigStore
}

func newSuite(tb testing.TB, c check, subject Subject) *suite {
	tb.Helper()
	if subject.Store == nil {
		tb.Fatalf("storetest: the factory returned a Subject without a Store")
	}
	if subject.Timeout == 0 {
		subject.Timeout = 10 * time.Second
	}
	writer := subject.Writer
	if writer == nil {
		writer = subject.Store
	}
	if b, ok := writer.(configstore.BatchWriter); ok && subject.Batches == nil {
		subject.Batches = b
	}
	return &suite{TB: tb, check: c, subject: subject, store: subject.Store, writer: writer}
}

// broken reports that the promise is not kept.
func (s *suite) broken(format string, args ...any) {
	s.Helper()
	s.Errorf("%s", s.report(format, args...))
}

// stop is broken for when nothing more can be learnt.
func (s *suite) stop(format string, args ...any) {
	s.Helper()
	s.Fatalf("%s", s.report(format, args...))
}

func (s *suite) report(format string, args ...any) string {
	return fmt.Sprintf("broken promise: %s\n\tmade in: %s\n\tseen: %s",
		s.check.promise, s.check.source, fmt.Sprintf(format, args...))
}

// cache returns the subject as a cache.
func (s *suite) cache() configstore.ConfigStoreCache {
	s.Helper()
	cache, ok := s.store.(configstore.ConfigStoreCache)
	if !ok {
		s.Fatalf("storetest: TestCache needs a configstore.ConfigStoreCache, the factory returned a %T", s.store)
	}
	return cache
}

func (s *suite) settle() {
	if s.subject.Settle != nil {
		s.subject.Settle()
	}
}

// create, update, updateStatus and remove write what must succeed.
func (s *suite) create(c configstore.Config) string {
	s.Helper()
	return s.must("Create", c, s.writer.Create)
}

func (s *suite) update(c configstore.Config) string {
	s.Helper()
	return s.must("Update", c, s.writer.Update)
}

func (s *suite) updateStatus(c configstore.Config) string {
	s.Helper()
	return s.must("UpdateStatus", c, s.writer.UpdateStatus)
}

func (s *suite) remove(c configstore.Config) {
	s.Helper()
	s.must("Delete", c, func(c configstore.Config) (string, error) {
		return "", s.writer.Delete(c.GroupVersionKind, c.Name, c.Namespace, nil)
	})
}

func (s *suite) must(verb string, c configstore.Config, write func(configstore.Config) (string, error)) string {
	s.Helper()
	var revision string
	var err error
	s.within(verb+" of "+c.Key().Object(), func() {}, func() { revision, err = write(c) })
	if err != nil {
		s.stop("%s(%s) = %v, want success", verb, c.Key().Object(), err)
	}
	s.settle()
	return revision
}

// get reads what must exist.
func (s *suite) get(c configstore.Config) *configstore.Config {
	s.Helper()
	got := s.read(c)
	if got == nil {
		s.stop("Get(%s) = nil, want the object", c.Key().Object())
	}
	return got
}

// read reads what may be absent.
func (s *suite) read(c configstore.Config) *configstore.Config {
	return s.store.Get(c.GroupVersionKind, c.Name, c.Namespace)
}

// expectValue demands that an object exists with the value that it was written
// with.
func (s *suite) expectValue(c configstore.Config, want string) {
	s.Helper()
	if got := valueOf(s.get(c)); got != want {
		s.broken("Get(%s) has the value %q, want %q", c.Key().Object(), got, want)
	}
}

func (s *suite) expectAbsent(c configstore.Config) {
	s.Helper()
	if got := s.read(c); got != nil {
		s.broken("Get(%s) = %s, want nil", c.Key().Object(), describe(got))
	}
}

// expectList demands a list of exactly these objects, in this order.
func (s *suite) expectList(kind configstore.GroupVersionKind, namespace string, want ...string) {
	s.Helper()
	list := s.store.List(kind, namespace)
	if got := names(list); strings.Join(got, " ") != strings.Join(want, " ") {
		s.broken("List(%s, %q) = %v, want %v", kind.Kind, namespace, got, want)
	}
}

// names returns "namespace/name" for each object.
func names(list []*configstore.Config) []string {
	out := make([]string, len(list))
	for i, c := range list {
		out[i] = c.Namespace + "/" + c.Name
	}
	return out
}

func describe(c *configstore.Config) string {
	if c == nil {
		return "nil"
	}
	return fmt.Sprintf("%s (revision %q, generation %d, value %q)",
		c.Key().Object(), c.ResourceVersion, c.Generation, valueOf(c))
}

// await waits for something that must happen.
func (s *suite) await(done <-chan struct{}, what string) {
	s.Helper()
	timer := time.NewTimer(s.subject.Timeout)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
		s.stop("%s has not happened after %v", what, s.subject.Timeout)
	}
}

// awaitOpening is await for what a blocked handler has to do; if it does not
// happen, open lets the handler go before the suite gives up.
func (s *suite) awaitOpening(done <-chan struct{}, open func(), what string) {
	s.Helper()
	timer := time.NewTimer(s.subject.Timeout)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
		open()
		s.stop("%s has not happened after %v", what, s.subject.Timeout)
	}
}

// idle gives others a little time to do what they must not do.
func (s *suite) idle() {
	timer := time.NewTimer(min(s.subject.Timeout, 20*time.Millisecond))
	defer timer.Stop()
	<-timer.C
}

// within runs f on a goroutine of its own and waits for it. If f hangs, unblock
// is called before the suite gives up, so that nothing is left behind.
func (s *suite) within(what string, unblock, f func()) {
	s.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	s.awaitOpening(done, unblock, "the end of "+what)
}

// eventually waits for a state of which nothing tells, such as HasSynced.
func (s *suite) eventually(what string, ok func() bool) {
	s.Helper()
	timer := time.NewTimer(s.subject.Timeout)
	defer timer.Stop()
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	for !ok() {
		select {
		case <-ticker.C:
		case <-timer.C:
			s.stop("%s is not so after %v", what, s.subject.Timeout)
		}
	}
}

// writes is the skip of checks of a store's own writing.
func writes(s *suite) string {
	if s.subject.Writer != nil {
		return "the store is read-only"
	}
	return ""
}
