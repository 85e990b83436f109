// SPDX-License-Identifier: Apache-2.0

package xdsupdate_test

import (
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pilotkit/pilotkit/internal/test/histories"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// timeline is when requests came and pushes began and ended.
type timeline struct {
	opts xdsupdate.PusherOptions

	mu sync.Mutex
	// waiting holds when the requests came that were not pushed: for endpoints
	// only, and others.
	waiting map[bool][]time.Duration
	// last is when the last request came, pushed when the last push was.
	last, pushed map[bool]time.Duration
	// first is whether the first request that waits came after a quiet time.
	first map[bool]bool
	ended time.Duration
}

func newTimeline(opts xdsupdate.PusherOptions) *timeline {
	return &timeline{
		opts: opts, waiting: map[bool][]time.Duration{}, first: map[bool]bool{},
		last:   map[bool]time.Duration{false: -time.Hour, true: -time.Hour},
		pushed: map[bool]time.Duration{false: -time.Hour, true: -time.Hour},
	}
}

func (l *timeline) ask(at time.Duration, endpointsOnly bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	lane := endpointsOnly && !l.opts.Debounce.Endpoints
	if len(l.waiting[lane]) == 0 {
		l.first[lane] = at-max(l.last[lane], l.pushed[lane]) >= l.opts.Debounce.After
	}
	l.waiting[lane] = append(l.waiting[lane], at)
	l.last[lane] = at
}

// due returns when what waits in a lane has to be pushed, by its documentation.
func (l *timeline) due(lane bool) (time.Duration, bool) {
	w := l.waiting[lane]
	switch {
	case len(w) == 0:
		return 0, false
	case lane:
		return max(w[0], l.pushed[lane]+l.opts.Debounce.EndpointInterval), true
	case l.opts.Debounce.LeadingEdge && l.first[lane]:
		return w[0], true
	default:
		return min(w[len(w)-1]+l.opts.Debounce.After, w[0]+l.opts.Debounce.Max), true
	}
}

// push checks that a push comes when it is due, or when the push before it has
// ended, and that it has everything.
func (l *timeline) push(t *testing.T, at time.Duration, requests int, fullPush bool) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	due, ok := l.due(!fullPush)
	if other, also := l.due(true); fullPush && !ok && also {
		due, ok = other, also
	}
	if due = max(due, l.ended); !ok || at != due {
		t.Errorf("a push at %v, want it at %v", at, due)
	}
	want := len(l.waiting[!fullPush])
	if n := len(l.waiting[true]); fullPush && n > 0 {
		want += n
		l.waiting[true], l.pushed[true] = nil, at
	}
	if requests != want {
		t.Errorf("a push of %d requests at %v, want %d", requests, at, want)
	}
	l.waiting[!fullPush], l.pushed[!fullPush] = nil, at
}

// TestDebounceByTheBook asks at random times, pushes take random times, and every
// push has to come at the very moment that the rules say.
func TestDebounceByTheBook(t *testing.T) {
	for _, seed := range histories.Seeds(t, 60) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 4))
			l := newTimeline(xdsupdate.PusherOptions{Debounce: xdsupdate.Debounce{After: 100*time.Millisecond + 1, Max: 700 * time.Millisecond, EndpointInterval: []time.Duration{-1, 60 * time.Millisecond}[seed%2], LeadingEdge: seed/2%2 == 0, Endpoints: seed/4%2 == 0}})
			start := time.Now()
			durations := rand.New(rand.NewPCG(seed, 5))
			push := func(req *xdsupdate.PushRequest) {
				requests := req.Reason[xdsupdate.ReasonConfig] + req.Reason[xdsupdate.ReasonEndpoint]
				l.push(t, time.Since(start), requests, l.opts.Debounce.Endpoints || req.Full)
				if durations.IntN(3) == 0 {
					time.Sleep(time.Duration(durations.IntN(300))*time.Millisecond + 3)
				}
				l.mu.Lock()
				l.ended = time.Since(start)
				l.mu.Unlock()
			}
			p := xdsupdate.NewPusher(push, l.opts)
			stop := make(chan struct{})
			var wg sync.WaitGroup
			wg.Go(func() { p.Run(stop) })
			for range 200 {
				gap := []int{0, 30, 90, 150, 400}[r.IntN(5)]
				// Odd times: asking and pushing never meet.
				time.Sleep(time.Duration(gap)*time.Millisecond + 7)
				endpointsOnly := r.IntN(2) == 0
				l.ask(time.Since(start), endpointsOnly)
				if endpointsOnly {
					p.ConfigUpdate(endpointPush("a"))
				} else {
					p.ConfigUpdate(fullPush("a"))
				}
				synctest.Wait()
			}
			time.Sleep(time.Minute)
			synctest.Wait()
			if n := len(l.waiting[true]) + len(l.waiting[false]); n > 0 {
				t.Errorf("%d requests were never pushed", n)
			}
			close(stop)
			wg.Wait()
		})
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}
