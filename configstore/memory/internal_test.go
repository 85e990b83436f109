// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"fmt"
	"runtime"
	"testing"

	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/pilotkit/pilotkit/configstore"
)

// These tests stop the store at moments that other tests can only hope to meet.

func testGVK() configstore.GroupVersionKind {
	return configstore.GroupVersionKind{Group: "test.example.com", Version: "v1", Kind: "Widget"}
}

func testObject(name, value string) configstore.Config {
	return configstore.Config{
		Meta: configstore.Meta{GroupVersionKind: testGVK(), Namespace: "a", Name: name},
		Spec: wrapperspb.String(value),
	}
}

func testStore(t *testing.T, names ...string) (*Store, *kind) {
	t.Helper()
	schemas := configstore.NewSchemasBuilder().MustAdd(configstore.Schema{
		GroupVersionKind: testGVK(), Spec: &wrapperspb.StringValue{},
	}).Build()
	s := Make(schemas)
	for _, name := range names {
		if _, err := s.Create(testObject(name, "old")); err != nil {
			t.Fatal(err)
		}
	}
	return s, s.kinds[0]
}

// state is what Get shows of the namespace "a".
func state(s *Store) string {
	text := ""
	for _, name := range []string{"changed", "gone", "new"} {
		if c := s.Get(testGVK(), name, "a"); c != nil {
			text += name + "=" + c.Spec.(*wrapperspb.StringValue).GetValue() + " "
		}
	}
	return text
}

// lists is what List shows of the same objects.
func lists(s *Store) string {
	text := ""
	for _, ns := range []string{"a", ""} {
		for _, c := range s.List(testGVK(), ns) {
			text += c.Name + ":" + c.Spec.(*wrapperspb.StringValue).GetValue() + " "
		}
	}
	return text
}

// Get shows a batch when it is committed, as a whole. List, which until then would
// have to show what was before, waits for the end of the commit.
func TestUncommittedIsInvisible(t *testing.T) {
	s, _ := testStore(t, "changed", "gone")
	before := "changed=old gone=old "
	if got := state(s); got != before {
		t.Fatalf("before: %s", got)
	}
	if got, want := lists(s), "changed:old gone:old changed:old gone:old "; got != want {
		t.Fatalf("lists before: %s, want %s", got, want)
	}
	s.mu.Lock()
	p := &s.plan
	p.begin(s)
	for _, r := range []request{
		{op: configstore.OpUpdate, config: testObject("changed", "new")},
		{op: configstore.OpDelete, config: testObject("gone", "")},
		{op: configstore.OpCreate, config: testObject("new", "new")},
	} {
		if err := s.prepare(&r); err != nil {
			t.Error(err)
		}
		if _, err := p.add(&r); err != nil {
			t.Error(err)
		}
	}
	p.install()
	if got := state(s); got != before {
		t.Errorf("while it is installed: %s", got)
	}
	listed := make(chan string)
	go func() { listed <- lists(s) }()
	s.committed.Store(p.revision)
	after := "changed=new new=new "
	if got := state(s); got != after {
		t.Errorf("committed, but not finished: %s", got)
	}
	p.finish()
	s.history.add(p.changes)
	p.end()
	s.mu.Unlock()
	if got := state(s); got != after {
		t.Errorf("after: %s", got)
	}
	if got, want := <-listed, "changed:new new:new changed:new new:new "; got != want {
		t.Errorf("lists that were read meanwhile: %s, want %s", got, want)
	}
	if err := s.Validate(); err != nil {
		t.Error(err)
	}
}

// What writers leave behind costs no memory in the long run.
func TestNothingIsLeftOfWhatIsDeleted(t *testing.T) {
	s, _ := testStore(t, "stays")
	for i := range 100 {
		c := testObject(fmt.Sprint("brief", i), "")
		for _, ns := range []string{"a", fmt.Sprint("ns", i)} {
			c.Namespace = ns
			if _, err := s.Create(c); err != nil {
				t.Fatal(err)
			}
			if err := s.Delete(testGVK(), c.Name, ns, nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	if n := s.kinds[0].objects.Len(); n != 1 {
		t.Errorf("%d objects are kept", n)
	}
	if err := s.Validate(); err != nil {
		t.Error(err)
	}
}

// A change can be read before it is in the queues. Flush waits for the end of its
// commit.
func TestFlushWaitsForTheCommit(t *testing.T) {
	s, _ := testStore(t)
	c := NewController(s)
	handled := 0
	c.RegisterEventHandler(testGVK(), func(_, _ configstore.Config, _ configstore.Event) { handled++ })
	c.Drain() // or Flush would wait for the lock because of the replay
	r := request{op: configstore.OpCreate, config: testObject("new", "new")}
	if err := s.prepare(&r); err != nil {
		t.Fatal(err)
	}
	s.mu.Lock()
	p := &s.plan
	p.begin(s)
	if _, err := p.add(&r); err != nil {
		t.Error(err)
	}
	p.install()
	s.committed.Store(p.revision) // and now it can be read
	begun, flushed := make(chan struct{}), make(chan error, 1)
	go func() {
		close(begun)
		flushed <- c.Flush(t.Context())
	}()
	<-begun
	for range 1000 {
		runtime.Gosched()
	}
	select {
	case err := <-flushed:
		t.Errorf("Flush = %v in the midst of a commit", err)
		flushed <- err
	default:
	}
	p.finish()
	s.history.add(p.changes)
	c.queue.Push(p.changes...)
	p.end()
	s.mu.Unlock()
	if err := <-flushed; err != nil || handled != 1 {
		t.Errorf("Flush = %v with %d events handled, want 1", err, handled)
	}
}

// A controller whose Run has ended is nothing to its store any more.
func TestStoreForgetsEndedControllers(t *testing.T) {
	s, _ := testStore(t)
	c := NewController(s)
	NewController(s)
	stop := make(chan struct{})
	close(stop)
	c.Run(stop)
	if n := len(s.queues); n != 1 {
		t.Errorf("the store has %d queues, want that of the other controller", n)
	}
}
