// SPDX-License-Identifier: Apache-2.0

package notify_test

import (
	"slices"
	"testing"

	"go.uber.org/goleak"

	"github.com/pilotkit/pilotkit/internal/notify"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// log collects what handlers are called with.
type log[T any] struct{ got []T }

func (l *log[T]) add(v T) { l.got = append(l.got, v) }

func (l *log[T]) want(t *testing.T, want ...T) {
	t.Helper()
	if !slices.EqualFunc(l.got, want, func(a, b T) bool { return any(a) == any(b) }) {
		t.Errorf("handled %v, want %v", l.got, want)
	}
}

func TestReplayAtItsPosition(t *testing.T) {
	q := notify.New(notify.Options[int]{})
	var a, b log[int]
	q.Subscribe(notify.Subscription[int]{Handle: a.add})
	q.Push(1)
	q.Push(2, 3)
	q.Subscribe(notify.Subscription[int]{Handle: b.add, Replay: slices.Values([]int{10, 20})})
	q.Push(4)
	q.Drain()
	a.want(t, 1, 2, 3, 4)
	b.want(t, 10, 20, 4)
}
