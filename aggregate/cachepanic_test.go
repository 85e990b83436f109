// SPDX-License-Identifier: Apache-2.0

package aggregate_test

import (
	"testing"
	"testing/synctest"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/memory"
)

// Run does not wait for its members before it lets a handler's panic through.
func TestPanicOfAHandlerReachesTheCallerOfRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, memory.Options{})
		w.cache.RegisterEventHandler(kind("B"), func(_, curr configstore.Config, _ configstore.Event) {
			if curr.Name == "bad" {
				panic("a handler's mistake")
			}
		})
		stop := make(chan struct{})
		defer close(stop)
		got := make(chan any, 1)
		go func() {
			defer func() { got <- recover() }()
			w.cache.Run(stop)
		}()
		if _, err := w.members[0].Create(object("B", "a", "bad", "1")); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		select {
		case v := <-got:
			if v != "a handler's mistake" {
				t.Errorf("Run panicked with %v", v)
			}
		default:
			t.Error("Run goes on after a handler panicked")
		}
		// Nothing is locked: who drives it next goes on.
		if _, err := w.members[0].Create(object("B", "a", "good", "1")); err != nil {
			t.Fatal(err)
		}
		w.cache.Drain()
		if w.cache.Get(kind("B"), "good", "a") == nil {
			t.Error("what is written after the panic cannot be read")
		}
	})
}
