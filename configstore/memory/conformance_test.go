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
	return memory.Make(schemas, memory.Options{HistoryLimit: testHistory, DetectMutations: true})
}

func TestStoreSuite(t *testing.T) {
	storetest.TestStore(t, func(_ testing.TB, schemas configstore.Schemas) storetest.Subject {
		s := newTestStore(schemas)
		return storetest.Subject{Store: s, History: testHistory}
	})
}

func TestControllerSuite(t *testing.T) {
	factory := func(_ testing.TB, schemas configstore.Schemas) storetest.Subject {
		s := newTestStore(schemas)
		return storetest.Subject{Store: memory.NewController(s), History: testHistory}
	}
	storetest.TestStore(t, factory)
	storetest.TestCache(t, factory)
}
