// SPDX-License-Identifier: Apache-2.0

package realclients

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// outcome is a client's report, as a line of JSON: for one call either the backend or the error, or
// else a mark that it was sent.
type outcome struct {
	Backend string `json:"backend"`
	Error   string `json:"error"`
	Mark    string `json:"mark"`

	at time.Time // when it was reported
}

// feed keeps the outcomes that were not read yet.
type feed struct {
	mu      sync.Mutex
	waiting []outcome
	ended   error         // why no more will come
	changed chan struct{} // of capacity 1: something came
}

func newFeed() *feed { return &feed{changed: make(chan struct{}, 1)} }

func (f *feed) add(o outcome) {
	o.at = time.Now()
	f.mu.Lock()
	f.waiting = append(f.waiting, o)
	f.mu.Unlock()
	f.wake()
}

// end lets readers know that no more outcomes will come.
func (f *feed) end(why error) {
	f.mu.Lock()
	f.ended = why
	f.mu.Unlock()
	f.wake()
}

func (f *feed) wake() {
	select {
	case f.changed <- struct{}{}:
	default:
	}
}

// next waits for the next outcome. There is one reader.
func (f *feed) next(ctx context.Context) (outcome, error) {
	for {
		f.mu.Lock()
		if len(f.waiting) > 0 {
			o := f.waiting[0]
			f.waiting = f.waiting[1:]
			f.mu.Unlock()
			return o, nil
		}
		ended := f.ended
		f.mu.Unlock()
		if ended != nil {
			return outcome{}, ended
		}
		select {
		case <-f.changed:
		case <-ctx.Done():
			return outcome{}, context.Cause(ctx)
		}
	}
}

// caller is a client that calls one target, one call after the other, without
// ever waiting for the target to be ready: a call fails as soon as the client
// knows of no backend. The methods read the outcomes of the calls.
type caller struct {
	t     *testing.T
	feed  *feed
	send  func(mark string) error // the client reports the mark between two calls
	marks int
	until time.Time // when the method that reads gives up
	recap []string  // the last line, for messages
	// failed is how many calls have failed, failure the error of the last of them.
	failed  int
	failure string
	// counts: follow and mark go on after calls that fail.
	counts bool
}

// newCaller returns the caller of a client that was started, when that runs.
func newCaller(t *testing.T, feed *feed, send func(mark string) error) *caller {
	t.Helper()
	c := &caller{t: t, feed: feed, send: send}
	c.readUntil(startMark, startPatience)
	return c
}

// How long a method reads before it fails the test, and how long a client may take
// to start: grpc-js reads all of Envoy's protocol buffers first.
const (
	patience      = time.Minute
	startPatience = 2 * patience
)

// follow returns when all of some backends answer and no other does; no call may
// fail until then, those included that were not read before.
func (c *caller) follow(backends ...string) {
	c.t.Helper()
	c.mark()
	c.until = time.Now().Add(patience)
	var last []string
	for !covers(last, backends) {
		o := c.next("answers of " + strings.Join(backends, ", "))
		switch {
		case o.Error != "" && c.counts:
		case o.Error != "":
			c.t.Fatalf("want answers of %v, but a call failed: %s; before it: %s", backends, o.Error, strings.Join(c.recap, ", "))
		case !slices.Contains(backends, o.Backend):
			last = nil
		default:
			last = append(last, o.Backend)
		}
	}
}

// recover is follow after an outage: calls may fail until the first one succeeds.
// It returns when that was.
func (c *caller) recover(backends ...string) (first time.Time) {
	c.t.Helper()
	c.until = time.Now().Add(patience)
	for first.IsZero() {
		if o := c.next("an answer of " + strings.Join(backends, ", ")); slices.Contains(backends, o.Backend) {
			first = o.at
		}
	}
	c.follow(backends...)
	return first
}

// steadyCalls is how many calls in a row show that a state has been reached.
const steadyCalls = 40

// covers reports whether the last calls, enough of them, were answered by each of
// some backends.
func covers(last, backends []string) bool {
	if len(last) < steadyCalls {
		return false
	}
	for _, name := range backends {
		if !slices.Contains(last, name) {
			return false
		}
	}
	return true
}

// fails returns when some calls in a row have failed.
func (c *caller) fails() {
	c.t.Helper()
	c.until = time.Now().Add(patience)
	for inARow := 0; inARow < 5; inARow++ {
		if o := c.next("failing calls"); o.Error == "" {
			inARow = -1
		}
	}
}

// count returns how often each backend answers n calls, none of which may fail.
func (c *caller) count(n int) map[string]int {
	c.t.Helper()
	c.mark()
	c.until = time.Now().Add(patience)
	answers := make(map[string]int)
	for range n {
		o := c.next("an answer")
		if o.Error != "" {
			c.t.Fatalf("a call failed: %s", o.Error)
		}
		answers[o.Backend]++
	}
	return answers
}

// mark reads the outcomes of all calls that began before it was called; none may
// have failed.
func (c *caller) mark() {
	c.t.Helper()
	c.marks++
	mark := strconv.Itoa(c.marks)
	if err := c.send(mark); err != nil {
		c.t.Fatalf("send a mark: %v", err)
	}
	c.readUntil(mark, patience)
}

// startMark is the report of a client before its first call.
const startMark = "start"

func (c *caller) readUntil(mark string, most time.Duration) {
	c.t.Helper()
	c.until = time.Now().Add(most)
	for {
		o, err := c.read("mark " + mark)
		switch {
		case err != nil:
			c.t.Fatal(err)
		case o.Mark == mark:
			return
		case o.Error != "" && !c.counts:
			c.t.Fatalf("a call failed: %s; before it: %s", o.Error, strings.Join(c.recap, ", "))
		}
	}
}

// next returns the outcome of the next call.
func (c *caller) next(want string) outcome {
	c.t.Helper()
	for {
		o, err := c.read(want)
		if err != nil {
			c.t.Fatal(err)
		}
		if o.Mark == "" {
			return o
		}
	}
}

func (c *caller) read(want string) (outcome, error) {
	ctx, cancel := context.WithDeadline(c.t.Context(), c.until)
	defer cancel()
	o, err := c.feed.next(ctx)
	if err != nil {
		return outcome{}, fmt.Errorf("waited for %s: %w; the last calls: %s", want, err, strings.Join(c.recap, ", "))
	}
	if o.Error != "" {
		c.failed++
		c.failure = o.Error
	}
	if o.Mark == "" {
		c.recap = append(c.recap, o.Backend+o.Error)
		c.recap = c.recap[max(0, len(c.recap)-8):]
	}
	return o, nil
}
