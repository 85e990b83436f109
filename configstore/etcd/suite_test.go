// SPDX-License-Identifier: Apache-2.0

package etcd_test

import (
	"testing"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/etcd"
	"github.com/pilotkit/pilotkit/configstore/storetest"
	"github.com/pilotkit/pilotkit/internal/test/tier"
)

// TestSuite: the cache keeps the promises of package configstore.
func TestSuite(t *testing.T) {
	factory := func(tb testing.TB, schemas configstore.Schemas) storetest.Subject {
		tb.Helper()
		srv, prefix := shared.get(tb)
		c, err := etcd.New(newClient(tb, srv.addr), schemas, etcd.Options{Prefix: prefix, HistoryLimit: 64})
		if err != nil {
			tb.Fatal(err)
		}
		return storetest.Subject{Store: c, History: 64, NetBatches: true, Fewer: tier.Divisor(), Timeout: patience}
	}
	t.Run("Store", func(t *testing.T) { storetest.TestStore(t, factory) })
	t.Run("Cache", func(t *testing.T) { storetest.TestCache(t, factory) })
}
