// SPDX-License-Identifier: Apache-2.0

package memory_test

import (
	"fmt"
	"strconv"
	"sync"
	"testing"

	"go.uber.org/atomic"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/memory"
)

// batches writes numbered batches to a store. Batch n updates the objects "u0", "u1" and
// so on to the value n, creates "x0", "x1" and so on with it if n is even, and deletes
// them if n is odd. So each of them shows which batch a reader has seen.
type batches struct {
	store *memory.Store
	n     int
}

// sizeOfBatch is how many objects of each sort there are: a commit takes long enough for
// readers to come in the midst of it.
const sizeOfBatch = 50

func newBatches(t *testing.T) *batches {
	t.Helper()
	b := &batches{store: memory.Make(testSchemas())}
	for i := range sizeOfBatch {
		create(t, b.store, object(widget(), "a", fmt.Sprint("u", i), "-1"))
	}
	b.write(t)
	return b
}

// write writes the next batch.
func (b *batches) write(t *testing.T) {
	t.Helper()
	op := []configstore.Op{configstore.OpCreate, configstore.OpDelete}[b.n%2]
	var batch []configstore.Mutation
	for i := range sizeOfBatch {
		batch = append(batch,
			configstore.Mutation{Op: configstore.OpUpdate, Config: object(widget(), "a", fmt.Sprint("u", i), strconv.Itoa(b.n))},
			configstore.Mutation{Op: op, Config: object(widget(), "a", fmt.Sprint("x", i), strconv.Itoa(b.n))},
		)
	}
	if _, err := b.store.Apply(batch...); err != nil {
		t.Error(err)
	}
	b.n++
}

// reader reads what batches write, and knows the last batch that it has seen.
type reader struct {
	store *memory.Store
	seen  int
}

// see takes note of a batch, which must not be before one that was seen already.
func (r *reader) see(what string, n int) error {
	if n < r.seen {
		return fmt.Errorf("%s shows batch %d after batch %d was seen", what, n, r.seen)
	}
	r.seen = n
	return nil
}

// get reads one object. One that is absent shows an odd batch, an object its value.
func (r *reader) get(name string) error {
	c := r.store.Get(widget(), name, "a")
	if c == nil {
		return r.see("the absence of "+name, r.seen|1)
	}
	n, err := strconv.Atoi(value(c))
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return r.see(name, n)
}

// list reads a namespace or all, and checks that all objects show the same batch.
func (r *reader) list(namespace string) error {
	items := r.store.List(widget(), namespace)
	values := map[string]int{}
	for _, c := range items {
		values[value(c)]++
	}
	if len(values) != 1 {
		return fmt.Errorf("a list of namespace %q shows values %v", namespace, values)
	}
	n, err := strconv.Atoi(value(items[0]))
	if want := sizeOfBatch * (2 - n&1); len(items) != want {
		return fmt.Errorf("a list of batch %d has %d objects, want %d", n, len(items), want)
	}
	if err != nil {
		return fmt.Errorf("a list: %w", err)
	}
	return r.see("a list", n)
}

// read reads everything by name, forwards or backwards, and a list in between.
func (r *reader) read(round int) error {
	for i := range sizeOfBatch {
		if round%2 == 1 {
			i = sizeOfBatch - 1 - i
		}
		for _, sort := range []string{"u", "x"} {
			if err := r.get(sort + strconv.Itoa(i)); err != nil {
				return err
			}
		}
		if i != round%sizeOfBatch {
			continue
		}
		if err := r.list([]string{"a", configstore.NamespaceAll}[round%3%2]); err != nil {
			return err
		}
	}
	return nil
}

// Readers see all of a batch or no part of it, and see batches in order, regardless of the kind of
// read and the step of the commit.
func TestReadersSeeWholeBatches(t *testing.T) {
	b := newBatches(t)
	var done atomic.Bool
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			r := &reader{store: b.store}
			for round := 0; !done.Load(); round++ {
				if err := r.read(round); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for range 300 {
		b.write(t)
		if t.Failed() {
			break
		}
	}
	done.Store(true)
	wg.Wait()
	if err := b.store.Validate(); err != nil {
		t.Error(err)
	}
}

// What writers leave behind costs no memory in the long run.
func TestNothingIsLeftOfWhatIsDeleted(t *testing.T) {
	s := newStore()
	create(t, s, object(widget(), "a", "stays", "1"))
	for i := range 100 {
		name := fmt.Sprint("brief", i)
		for _, ns := range []string{"a", fmt.Sprint("ns", i)} {
			create(t, s, object(widget(), ns, name, ""))
			if err := s.Delete(widget(), name, ns, nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	if n := len(s.List(widget(), configstore.NamespaceAll)); n != 1 {
		t.Errorf("%d objects exist, want 1", n)
	}
	if err := s.Validate(); err != nil { // it finds objects and lists that nobody can see any more
		t.Error(err)
	}
}

// A controller whose Run has ended is nothing to its store any more.
func TestStoreForgetsEndedControllers(t *testing.T) {
	s := newStore()
	c := memory.NewController(s)
	memory.NewController(s)
	stop := make(chan struct{})
	close(stop)
	c.Run(stop)
	if n := s.Queues(); n != 1 {
		t.Errorf("the store has %d queues, want that of the other controller", n)
	}
}
