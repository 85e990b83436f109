// SPDX-License-Identifier: Apache-2.0

package memory_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/atomic"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/memory"
)

// source has synced when it is told so.
type source struct{ synced atomic.Bool }

func (s *source) HasSynced() bool { return s.synced.Load() }

// TestRegisteredSources: WaitForSync of a cache waits for all registered sources, whether of the
// store or of one of its caches, and until the handlers have handled the objects that the sources
// wrote.
func TestRegisteredSources(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, c := newController()
		other := memory.NewController(s)
		first, second := &source{}, &source{}
		s.RegisterSource(first)
		c.RegisterSource(second)
		release := make(chan struct{})
		c.RegisterEventHandler(widget(), func(_, _ configstore.Config, _ configstore.Event) { <-release })
		defer run(c)()
		defer run(other)()
		waits := func(what string, cache *memory.Controller, want bool) {
			t.Helper()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if err := configstore.WaitForSync(ctx, cache); errors.Is(err, context.DeadlineExceeded) != want {
				t.Errorf("%s: WaitForSync = %v", what, err)
			}
		}
		waits("no source has synced", c, true)
		create(t, s, object(widget(), "a", "x", "1"))
		first.synced.Store(true)
		waits("one of two has", c, true)
		waits("one of two has, another cache", other, true)
		second.synced.Store(true)
		waits("a handler works on the initial state", c, true)
		close(release)
		waits("all have", c, false)
		waits("all have, another cache", other, false)
		s.RegisterSource(&source{})
		waits("one that comes later", c, false)
	})
}

// TestNilSource is refused where it is registered, not where a cache asks it.
func TestNilSource(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("RegisterSource did not panic")
		}
	}()
	newStore().RegisterSource(nil)
}
