// SPDX-License-Identifier: Apache-2.0

package commit_test

import (
	"errors"
	"fmt"
	"testing"

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

// want returns the write that brings an object to the state c.
func (s *store) want(c configstore.Config, again bool) commit.Write {
	return commit.Write{Again: again, Mutation: func() (configstore.Mutation, error) {
		held := s.Get(c.GroupVersionKind, c.Name, c.Namespace)
		if held == nil {
			return configstore.Mutation{Op: configstore.OpCreate, Config: c}, nil
		}
		c.ResourceVersion = held.ResourceVersion
		return configstore.Mutation{Op: configstore.OpUpdate, Config: c}, nil
	}}
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
			s.Store = memory.Make(configstore.NewSchemasBuilder().MustAdd(configstore.Schema{GroupVersionKind: limit(), Spec: &structpb.Value{}}).Build())
			var errs []bool
			for _, err := range commit.All(&s, []commit.Write{s.want(config("a", 1), test.again), s.want(config("b", 1), false), s.want(config("c", 1), false)}) {
				errs = append(errs, err != nil)
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

// TestNothingToDo: neither the zero mutation nor an error reaches the store.
func TestNothingToDo(t *testing.T) {
	t.Parallel()
	s := store{Store: memory.Make(configstore.NewSchemasBuilder().MustAdd(configstore.Schema{GroupVersionKind: limit(), Spec: &structpb.Value{}}).Build())}
	nothing := func() (configstore.Mutation, error) { return configstore.Mutation{}, nil }
	failing := func() (configstore.Mutation, error) { return configstore.Mutation{}, errRefused }
	errs := commit.All(&s, []commit.Write{{Mutation: nothing}, {Mutation: failing}, {Mutation: nothing, Again: true}, {Mutation: failing, Again: true}})
	if diff := cmp.Diff([]bool{false, true, false, true}, []bool{errs[0] != nil, errs[1] != nil, errs[2] != nil, errs[3] != nil}); diff != "" || s.calls != nil {
		t.Errorf("calls %v, errors (-want +got):\n%s", s.calls, diff)
	}
}
