// SPDX-License-Identifier: Apache-2.0

package testserver

import (
	"context"
	"testing"
	"time"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
)

// patience is longer than anything takes.
const patience = 2 * time.Minute

// Applied returns when all connected clients have accepted the effects of all earlier writes to a
// cache.
func Applied(tb testing.TB, configs configstore.Flusher, server *ads.Server) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), patience)
	defer cancel()
	if err := configs.Flush(ctx); err != nil {
		tb.Fatal(err)
	}
	if err := server.WaitApplied(ctx, nil); err != nil {
		tb.Fatal(err)
	}
}

// Accepted fails the test if a client has refused something.
func Accepted(tb testing.TB, server *ads.Server) {
	tb.Helper()
	faults, _ := server.Faults()
	for _, proxy := range server.Proxies() {
		for typeURL, status := range proxy.Types {
			if status.Rejections > 0 {
				tb.Errorf("%s refused %s %d times, present faults: %v", proxy.ID, typeURL, status.Rejections, faults)
			}
		}
	}
}
