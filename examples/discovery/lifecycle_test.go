// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// journal is what parts have done.
type journal struct {
	mu    sync.Mutex
	lines []string
}

func (j *journal) add(line string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, line)
}

// expect demands that parts have done this.
func (j *journal) expect(t *testing.T, want ...string) {
	t.Helper()
	j.mu.Lock()
	defer j.mu.Unlock()
	if !slices.Equal(j.lines, want) {
		t.Errorf("got %q, want %q", j.lines, want)
	}
}

// part returns one that takes some time to stop.
func (j *journal) part(name string, stopping time.Duration, err error) part {
	return part{name, func(stop <-chan struct{}) error {
		<-stop
		time.Sleep(stopping)
		j.add("stopped " + name)
		return err
	}}
}

// TestOrder: parts stop in the opposite order, each when the one after it has stopped.
func TestOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var j journal
		l := newLifecycle(slog.New(slog.DiscardHandler), 10*time.Second)
		l.start(j.part("store", 0, nil), j.part("registry", time.Second, nil))
		l.start(j.part("server", 3*time.Second, nil))
		began := time.Now()
		if err := l.stop(); err != nil {
			t.Error(err)
		}
		j.expect(t, "stopped server", "stopped registry", "stopped store")
		if took := time.Since(began); took != 4*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

// TestPatience: a part that hangs, and one that fails, are named, and keep no other from
// stopping.
func TestPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var j journal
		l := newLifecycle(slog.New(slog.DiscardHandler), time.Second)
		l.start(j.part("store", 0, nil), j.part("source", time.Minute, nil), j.part("server", 0, errors.New("broken")))
		err := l.stop()
		if err == nil || !strings.Contains(err.Error(), "stop source: it has not ended within 1s") ||
			!strings.Contains(err.Error(), "stop server: broken") {
			t.Errorf("error %v", err)
		}
		j.expect(t, "stopped server", "stopped store")
		time.Sleep(time.Hour)
	})
}

// TestPartThatEnds: the program learns of a part that ends by itself, whether it says why
// or not.
func TestPartThatEnds(t *testing.T) {
	for _, why := range []error{nil, errors.New("port taken")} {
		synctest.Test(t, func(t *testing.T) {
			l := newLifecycle(slog.New(slog.DiscardHandler), time.Second)
			l.start(part{"server", func(<-chan struct{}) error { return why }})
			err := <-l.failed
			if !errors.Is(err, errEnded) || why != nil && !errors.Is(err, why) || !strings.Contains(err.Error(), "server") {
				t.Errorf("error %v", err)
			}
			if err := l.stop(); !errors.Is(err, why) {
				t.Errorf("stop: %v", err)
			}
		})
	}
}
