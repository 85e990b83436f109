// SPDX-License-Identifier: Apache-2.0

package commit_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/internal/commit"
	"github.com/pilotkit/pilotkit/configstore/memory"
)

func limit() configstore.GroupVersionKind {
	return configstore.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Limit"}
}

func config(name string, value float64) configstore.Config {
	return configstore.Config{
		Meta: configstore.Meta{GroupVersionKind: limit(), Namespace: "default", Name: name}, Spec: structpb.NewNumberValue(value),
	}
}

// store is one with another writer, that writes before the first calls, and refuses or panics at some
// objects.
type store struct {
	*memory.Store
	faster       int
	calls        []string
	refuse, boom string
	// last is the last batch.
	last []configstore.Mutation
}

func newStore() *memory.Store {
	schema := configstore.Schema{GroupVersionKind: limit(), Spec: &structpb.Value{}, Status: &structpb.Value{}}
	return memory.Make(configstore.NewSchemasBuilder().MustAdd(schema).Build())
}

func (s *store) Unwrap() configstore.ConfigStore { return nil }

func (s *store) meet(call string, mutations ...configstore.Mutation) error {
	s.calls = append(s.calls, call)
	if s.faster > 0 {
		s.faster--
		if _, err := configstore.Upsert(s.Store, config("a", float64(100+s.faster))); err != nil {
			return err
		}
	}
	for _, m := range mutations {
		switch m.Config.Name {
		case s.refuse:
			return errRefused
		case s.boom:
			panic(errRefused)
		}
	}
	return nil
}

var errRefused = errors.New("refused")

func (s *store) Apply(mutations ...configstore.Mutation) (uint64, error) {
	if err := s.meet(fmt.Sprint("batch of ", len(mutations)), mutations...); err != nil {
		return 0, err
	}
	s.last = mutations
	return s.Store.Apply(mutations...)
}

func (s *store) Create(c configstore.Config) (string, error) {
	if err := s.meet("create "+c.Name, configstore.Mutation{Config: c}); err != nil {
		return "", err
	}
	return s.Store.Create(c)
}

func (s *store) Update(c configstore.Config) (string, error) {
	if err := s.meet("update "+c.Name, configstore.Mutation{Config: c}); err != nil {
		return "", err
	}
	return s.Store.Update(c)
}

// want returns the write that brings an object, which the source owns if it is there, to the state c.
func want(c configstore.Config, again bool) *commit.Write {
	return &commit.Write{Key: c.Key(), Want: &c, Owned: commit.Owned{Config: &configstore.Config{}}, Again: again}
}

// TestAll: which writes form one batch, which are separate, and their outcomes.
func TestAll(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		store store
		again bool
		calls []string
		errs  []bool
	}{
		"one batch":        {calls: []string{"batch of 3"}, errs: []bool{false, false, false}},
		"another writer":   {store: store{faster: 3}, calls: []string{"batch of 3", "batch of 3", "batch of 3", "batch of 3"}, errs: []bool{false, false, false}},
		"refused before":   {again: true, calls: []string{"batch of 2", "create a"}, errs: []bool{false, false, false}},
		"one is refused":   {store: store{refuse: "b"}, calls: []string{"batch of 3", "create a", "create b", "create c"}, errs: []bool{false, true, false}},
		"a panic at one":   {store: store{boom: "b"}, calls: []string{"batch of 3", "create a", "create b", "create c"}, errs: []bool{false, true, false}},
		"a race for one":   {store: store{faster: 1}, again: true, calls: []string{"batch of 2", "update a"}, errs: []bool{false, false, false}},
		"raced to the end": {store: store{faster: 1000}, again: true, errs: []bool{true, false, false}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := test.store
			s.Store = newStore()
			var errs []bool
			writes := []*commit.Write{want(config("c", 1), false), want(config("b", 1), false), want(config("a", 1), test.again)}
			commit.All(&s, writes)
			for _, w := range slices.Backward(writes) {
				errs = append(errs, w.Err != nil)
			}
			if diff := cmp.Diff(test.errs, errs); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.calls, s.calls); diff != "" && test.calls != nil {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
			for i, object := range []string{"a", "b", "c"} {
				got := s.Get(limit(), object, "default")
				if written := got != nil && got.Spec.(*structpb.Value).GetNumberValue() == 1; written == errs[i] {
					t.Errorf("%s is %v, and its error %v", object, got, errs[i])
				}
			}
		})
	}
}

// TestOwned: what becomes of an object that is there, and of the one that the source owns.
func TestOwned(t *testing.T) {
	t.Parallel()
	first, second := config("a", 1), config("a", 2)
	first.CreationTimestamp, second.CreationTimestamp = time.Unix(1, 0), time.Unix(1, 0)
	second.Status = structpb.NewBoolValue(true)
	other := config("a", 3)
	other.CreationTimestamp, other.Status = time.Unix(2, 0), structpb.NewStringValue("theirs")
	theirs := first
	theirs.Status = other.Status
	owned := func(c *configstore.Config) commit.Owned {
		return commit.Owned{Config: c, Created: c.CreationTimestamp}
	}
	for name, test := range map[string]struct {
		stored, want *configstore.Config
		before       commit.Owned
		calls        []string
		err          error
		after        commit.Owned
		status       *structpb.Value
	}{
		"there is nothing to delete":         {before: owned(&first)},
		"the object of another is to stay":   {stored: &other, before: owned(&first), status: structpb.NewStringValue("theirs")},
		"a deletion":                         {stored: &first, before: owned(&first), calls: []string{"batch of 1"}},
		"a creation":                         {want: &first, calls: []string{"batch of 1"}, after: owned(&first)},
		"an update":                          {stored: &first, want: &second, before: owned(&first), calls: []string{"batch of 1"}, after: owned(&second), status: structpb.NewBoolValue(true)},
		"a status is taken back":             {stored: &second, want: &first, before: owned(&second), calls: []string{"batch of 1"}, after: owned(&first)},
		"a status of another writer":         {stored: &theirs, want: &first, before: owned(&first), calls: []string{"batch of 1"}, after: owned(&first), status: structpb.NewStringValue("theirs")},
		"when it was created is not known":   {stored: &other, want: &second, before: commit.Owned{Config: &first}, calls: []string{"batch of 1"}, after: owned(&second), status: structpb.NewBoolValue(true)},
		"never owned":                        {stored: &other, want: &first, err: commit.ErrNotOwned, status: structpb.NewStringValue("theirs")},
		"deleted and created by another one": {stored: &other, want: &second, before: owned(&first), err: commit.ErrNotOwned, status: structpb.NewStringValue("theirs")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := store{Store: newStore()}
			if test.stored != nil {
				if _, err := s.Store.Create(*test.stored); err != nil {
					t.Fatal(err)
				}
			}
			w := commit.Write{Key: first.Key(), Want: test.want, Owned: test.before}
			commit.All(&s, []*commit.Write{&w})
			if !errors.Is(w.Err, test.err) || w.Owned.Config != test.after.Config || !w.Owned.Created.Equal(test.after.Created) {
				t.Errorf("owned %+v and error %v, want %+v and %v", w.Owned, w.Err, test.after, test.err)
			}
			if diff := cmp.Diff(test.calls, s.calls); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
			var status *structpb.Value
			if got := s.Get(limit(), "a", "default"); got != nil {
				status, _ = got.Status.(*structpb.Value)
			}
			if !configstore.EqualMessage(status, test.status) {
				t.Errorf("status %v, want %v", status, test.status)
			}
		})
	}
}

// TestOrder: additions and updates come before deletions, both in the order of keys.
func TestOrder(t *testing.T) {
	t.Parallel()
	s := store{Store: newStore()}
	var writes []*commit.Write
	for _, name := range []string{"d", "b", "a", "c"} {
		c := config(name, 1)
		w := want(c, false)
		if name < "c" {
			if _, err := s.Store.Create(c); err != nil {
				t.Fatal(err)
			}
			w.Want = nil
		}
		writes = append(writes, w)
	}
	commit.All(&s, writes)
	var order []string
	for _, m := range s.last {
		order = append(order, m.Op.String()+" "+m.Config.Name)
	}
	if diff := cmp.Diff([]string{"create c", "create d", "delete a", "delete b"}, order); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}
