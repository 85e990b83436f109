// SPDX-License-Identifier: Apache-2.0

package memory_test

import (
	"testing"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/memory"
	"github.com/pilotkit/pilotkit/configstore/storetest"
)

const testHistory = 20

func newTestStore(schemas configstore.Schemas) *memory.Store {
	return memory.MakeWithOptions(schemas, memory.Options{HistoryLimit: testHistory, DetectMutations: true})
}

func TestStoreSuite(t *testing.T) {
	storetest.TestStore(t, func(_ testing.TB, schemas configstore.Schemas) storetest.Subject {
		s := newTestStore(schemas)
		return storetest.Subject{Store: s, Apply: applyChanges(s), History: testHistory}
	})
}

func TestControllerSuite(t *testing.T) {
	factory := func(_ testing.TB, schemas configstore.Schemas) storetest.Subject {
		s := newTestStore(schemas)
		return storetest.Subject{Store: memory.NewController(s), Apply: applyChanges(s), History: testHistory}
	}
	storetest.TestStore(t, factory)
	storetest.TestCache(t, factory)
}

// applyChanges is Apply in the terms of the suite.
func applyChanges(s *memory.Store) func([]configstore.Change) (uint64, error) {
	ops := map[configstore.Event]configstore.Op{
		configstore.EventAdd:    configstore.OpCreate,
		configstore.EventUpdate: configstore.OpUpdate,
		configstore.EventDelete: configstore.OpDelete,
	}
	return func(changes []configstore.Change) (uint64, error) {
		mutations := make([]configstore.Mutation, len(changes))
		for i, c := range changes {
			mutations[i] = configstore.Mutation{Op: ops[c.Event], Config: *c.Curr}
		}
		return s.Apply(mutations...)
	}
}
