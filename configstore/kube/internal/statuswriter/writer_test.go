// SPDX-License-Identifier: Apache-2.0

package statuswriter_test

import (
	"context"
	"errors"
	"iter"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/atomic"

	"github.com/pilotkit/pilotkit/configstore/kube/internal/statuswriter"
	"github.com/pilotkit/pilotkit/internal/test/testmain"
)

func TestMain(m *testing.M) { testmain.Verify(m) }

// synced is a cache that has synced.
type synced struct{}

func (synced) HasSynced() bool { return true }

// election elects this process when it is told to.
type election struct {
	elect    chan struct{}
	leads    atomic.Bool
	released atomic.Bool
}

func (e *election) Run(stop <-chan struct{}, elected func()) {
	for {
		select {
		case <-e.elect:
			e.leads.Store(true)
			elected()
		case <-stop:
			return
		}
	}
}

func (e *election) Remaining() time.Duration {
	if e.leads.Load() {
		return time.Second
	}
	return 0
}

func (e *election) Release() { e.released.Store(true) }

// TestWriter: a leader writes all objects that differ, and then changed ones; a failed write is repeated.
// Another process writes nothing.
func TestWriter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var written []string
		failures := 1
		take := func() []string {
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			defer func() { written = nil }()
			slices.Sort(written)
			return written
		}
		e := &election{elect: make(chan struct{})}
		var listening atomic.Bool
		w := &statuswriter.Writer[string]{
			Name: "test: StatusWriter", Election: e, Cache: synced{},
			Listen: func() (end func()) {
				listening.Store(true)
				return func() { listening.Store(false) }
			},
			Ours:    func() iter.Seq[string] { return slices.Values([]string{"a", "b", "same"}) },
			Object:  func(key string) string { return key },
			Pending: func(key string) (bool, error) { return key != "same", nil },
			Write: func(ctx context.Context, key string) error {
				if left, ok := ctx.Deadline(); !ok || time.Until(left) > time.Second {
					t.Errorf("%s may be written until %v", key, left)
				}
				mu.Lock()
				defer mu.Unlock()
				if failures--; failures == 0 {
					return errors.New("refused")
				}
				written = append(written, key)
				return nil
			},
		}
		stop, ended := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(ended)
			w.Run(stop)
		}()
		synctest.Wait()
		w.Changed("a")
		time.Sleep(time.Minute)
		if got := take(); len(got) > 0 || w.Leading() || !listening.Load() {
			t.Errorf("before the election %q were written, leading %t, listening %t", got, w.Leading(), listening.Load())
		}
		e.elect <- struct{}{}
		time.Sleep(time.Minute)
		if got := take(); !slices.Equal(got, []string{"a", "b"}) || !w.Leading() {
			t.Errorf("a new leader writes %q, leading %t", got, w.Leading())
		}
		w.Changed("c", "same")
		if got := take(); !slices.Equal(got, []string{"c"}) {
			t.Errorf("after a change %q were written", got)
		}
		func() {
			defer func() {
				if got := recover(); got != "test: StatusWriter.Run was called twice" {
					t.Errorf("a second Run: %v", got)
				}
			}()
			w.Run(nil)
		}()
		close(stop)
		if <-ended; listening.Load() || !e.released.Load() {
			t.Errorf("at the end: listening %t, released %t", listening.Load(), e.released.Load())
		}
	})
}
