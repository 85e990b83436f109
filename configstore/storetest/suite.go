// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/internal/test/contract"
)

// check proves one promise.
type check = contract.Check[*suite]

// suite is one check at work on one subject.
type suite struct {
	*contract.T
	subject Subject
	store   configstore.ConfigStore
	writer  configstore.ConfigStore
}

// setUp returns the function that makes the suite of a check. Once a check has failed, the other
// checks wait only a tenth of the time for missing events: a store that delivers nothing fails many
// checks, and the first has waited long enough for all.
func setUp(factory Factory) func(*contract.T) *suite {
	failed := false
	return func(t *contract.T) *suite {
		s := newSuite(t, factory(t.TB, kinds()))
		if failed {
			t.Timeout /= 10
		}
		t.Cleanup(func() { failed = failed || t.Failed() })
		return s
	}
}

func newSuite(t *contract.T, subject Subject) *suite {
	t.Helper()
	if subject.Store == nil {
		t.Fatalf("storetest: the factory returned a Subject without a Store")
	}
	t.Timeout = cmp.Or(subject.Timeout, defaultTimeout)
	writer := subject.Writer
	if writer == nil {
		writer = subject.Store
	}
	if b, ok := configstore.As[configstore.BatchWriter](writer); ok && subject.Batches == nil {
		subject.Batches = b
	}
	return &suite{T: t, subject: subject, store: subject.Store, writer: writer}
}

// many returns how often a check repeats what it repeats n times as a rule.
func (s *suite) many(n int) int { return max(1, n/max(1, s.subject.Fewer)) }

// cache returns the subject as a cache.
func (s *suite) cache() configstore.ConfigStoreCache {
	s.Helper()
	cache, ok := s.store.(configstore.ConfigStoreCache)
	if !ok {
		s.Fatalf("storetest: TestCache needs a configstore.ConfigStoreCache, the factory returned a %T", s.store)
	}
	return cache
}

// need is the skip of checks of an ability that the store lacks.
func need[T any](s *suite) string {
	if _, ok := configstore.As[T](s.store); !ok {
		return "the store is no " + reflect.TypeFor[T]().String()
	}
	return ""
}

// ability returns the store as what checks with need know that it is.
func ability[T any](s *suite) T {
	s.Helper()
	a, ok := configstore.As[T](s.store)
	if !ok {
		s.Fatalf("storetest: %T is no %s", s.store, reflect.TypeFor[T]())
	}
	return a
}

func (s *suite) catchUp() {
	if s.subject.CatchUp != nil {
		s.subject.CatchUp()
	}
}

// create, update, updateStatus and remove make writes that must succeed.
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
	s.Within(verb+" of "+c.Key().Object(), func() { revision, err = write(c) })
	if err != nil {
		s.Stop("%s(%s) = %v, want success", verb, c.Key().Object(), err)
	}
	s.catchUp()
	return revision
}

// refused makes a write that must fail.
func (s *suite) refused(verb string, c configstore.Config, write func(configstore.Config) (string, error), want error) {
	s.Helper()
	if _, err := write(c); !errors.Is(err, want) {
		s.Broken("%s(%s) with the revision %q and the value %q = %v, want %v", verb, c.Key().Object(), c.ResourceVersion, valueOf(&c), err, want)
	}
	s.catchUp()
}

// deletion is Delete of exactly the revision of the argument.
func (s *suite) deletion(c configstore.Config) (string, error) {
	return "", s.writer.Delete(c.GroupVersionKind, c.Name, c.Namespace, &c.ResourceVersion)
}

// get reads an object that must exist.
func (s *suite) get(c configstore.Config) *configstore.Config {
	s.Helper()
	got := s.read(c)
	if got == nil {
		s.Stop("Get(%s) = nil, want the object", c.Key().Object())
	}
	return got
}

// read reads an object that may be absent.
func (s *suite) read(c configstore.Config) *configstore.Config {
	return s.store.Get(c.GroupVersionKind, c.Name, c.Namespace)
}

// expectValue demands that an object exists with the value that it was written
// with.
func (s *suite) expectValue(c configstore.Config, want string) {
	s.Helper()
	if got := valueOf(s.get(c)); got != want {
		s.Broken("Get(%s) has the value %q, want %q", c.Key().Object(), got, want)
	}
}

// expectUnchanged demands that an object has the value and the revision that it was
// written with.
func (s *suite) expectUnchanged(c configstore.Config, revision string) {
	s.Helper()
	got := s.get(c)
	if got.ResourceVersion != revision || valueOf(got) != valueOf(&c) {
		s.Broken("Get(%s) = %s, want the value %q and the revision %q", c.Key().Object(), describe(got), valueOf(&c), revision)
	}
}

func (s *suite) expectAbsent(c configstore.Config) {
	s.Helper()
	if got := s.read(c); got != nil {
		s.Broken("Get(%s) = %s, want nil", c.Key().Object(), describe(got))
	}
}

// expectList demands a list of exactly these objects, in this order.
func (s *suite) expectList(kind configstore.GroupVersionKind, namespace string, want ...string) {
	s.Helper()
	list := s.store.List(kind, namespace)
	if got := names(list); strings.Join(got, " ") != strings.Join(want, " ") {
		s.Broken("List(%s, %q) = %v, want %v", kind.Kind, namespace, got, want)
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

// domain returns the Domain that an object has that was written with another one.
func (s *suite) domain(written string) string {
	if s.subject.APIServer {
		return ""
	}
	return written
}

// ownTimes is the skip of checks of creation times that writers choose.
func ownTimes(s *suite) string {
	if s.subject.APIServer {
		return "creation times are the API server's"
	}
	return writes(s)
}

// writes is the skip of checks of a store's own writing.
func writes(s *suite) string {
	if s.subject.Writer != nil {
		return "the store is read-only"
	}
	return ""
}
