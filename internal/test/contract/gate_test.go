// SPDX-License-Identifier: Apache-2.0

package contract_test

import (
	"testing"
	"testing/synctest"

	"go.uber.org/atomic"

	"github.com/pilotkit/pilotkit/internal/test/contract"
)

func TestGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := contract.NewGate()
		select {
		case <-g.Entered:
			t.Error("entered before Pass was called")
		default:
		}
		var passed atomic.Int32
		for range 3 {
			go func() {
				g.Pass()
				passed.Inc()
			}()
		}
		<-g.Entered
		synctest.Wait()
		if n := passed.Load(); n != 0 {
			t.Errorf("%d passed the closed gate", n)
		}
		g.Open()
		g.Open()
		g.Pass()
		synctest.Wait()
		if n := passed.Load(); n != 3 {
			t.Errorf("%d of 3 passed the open gate", n)
		}
	})
}
