// SPDX-License-Identifier: Apache-2.0

package memory_test

import (
	"fmt"
	"testing"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/memory"
)

// newObjects returns objects that a store of n does not have, as many as are
// asked for: it deletes them again every thousand.
func newObjects(b *testing.B, s *memory.Store, n int) (next func() configstore.Config) {
	b.Helper()
	configs, i := benchConfigs(1000), 0
	for i := range configs {
		configs[i].Name = fmt.Sprintf("new-%06d", n+i)
	}
	return func() configstore.Config {
		if i == len(configs) {
			b.StopTimer()
			for _, c := range configs {
				must(b, s.Delete(benchKind, c.Name, c.Namespace, nil))
			}
			i = 0
			b.StartTimer()
		}
		i++
		return configs[i-1]
	}
}

// BenchmarkCreateToHandlerDrain creates an object and delivers its event, on one goroutine.
func BenchmarkCreateToHandlerDrain(b *testing.B) {
	sizes(b, func(b *testing.B, n int) {
		b.Helper()
		s, _ := benchStore(b, n)
		c := memory.NewController(s)
		handled := 0
		c.RegisterEventHandler(benchKind, func(_, _ configstore.Config, _ configstore.Event) { handled++ })
		c.Drain()
		next := newObjects(b, s, n)
		for b.Loop() {
			_, err := s.Create(next())
			must(b, err)
			c.Drain()
		}
	})
}

// BenchmarkCreateToHandlerRun creates an object and waits until the worker has
// handled it.
func BenchmarkCreateToHandlerRun(b *testing.B) {
	sizes(b, func(b *testing.B, n int) {
		b.Helper()
		s, _ := benchStore(b, n)
		c := memory.NewController(s)
		handled, ready := make(chan struct{}, 1), false
		c.RegisterEventHandler(benchKind, func(_, _ configstore.Config, e configstore.Event) {
			if ready && e == configstore.EventAdd {
				handled <- struct{}{}
			}
		})
		c.Drain()
		ready = true
		defer run(c)()
		next := newObjects(b, s, n)
		for b.Loop() {
			_, err := s.Create(next())
			must(b, err)
			<-handled
		}
	})
}

// BenchmarkHandlerLimit is the round trip of two channels, which is what waiting
// for another goroutine costs at least.
func BenchmarkHandlerLimit(b *testing.B) {
	values, handled := make(chan *configstore.Config), make(chan struct{}, 1)
	go func() {
		for range values {
			handled <- struct{}{}
		}
	}()
	c := &configstore.Config{}
	for b.Loop() {
		values <- c
		<-handled
	}
	close(values)
}

// BenchmarkWatch updates an object and waits until a watch has yielded the change.
func BenchmarkWatch(b *testing.B) {
	sizes(b, func(b *testing.B, n int) {
		b.Helper()
		s, configs := benchStore(b, n)
		changes, done, from := make(chan configstore.Change, 1), make(chan struct{}), s.Revision()
		go func() {
			defer close(done)
			for c, err := range s.Watch(b.Context(), from) {
				if err != nil || c.Event == configstore.EventDelete {
					return
				}
				changes <- c
			}
		}()
		c, i := relabelled(configs[0]), 0
		for b.Loop() {
			_, err := s.Update(c[i%2])
			must(b, err)
			<-changes
			i++
		}
		must(b, s.Delete(benchKind, configs[0].Name, configs[0].Namespace, nil))
		<-done
	})
}

// BenchmarkWatchBurst is the cost of one change of a burst of 500, which the watch
// reads when it is over.
func BenchmarkWatchBurst(b *testing.B) {
	sizes(b, func(b *testing.B, n int) {
		b.Helper()
		s, configs := benchStore(b, n)
		c, i := relabelled(configs[0]), 0
		from := s.Revision()
		for b.Loop() {
			_, err := s.Update(c[i%2])
			must(b, err)
			if i++; i%500 > 0 {
				continue
			}
			for change, err := range s.Watch(b.Context(), from) {
				must(b, err)
				if from = change.Revision; from == s.Revision() {
					break
				}
			}
		}
	})
}
