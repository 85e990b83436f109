// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/atomic"

	"github.com/pilotkit/pilotkit/internal/test/tier"
)

func isLease(r *http.Request) bool { return strings.Contains(r.URL.Path, "/leases") }

// elected waits for one of the members to lead, and returns it first.
func elected(members ...*member) (leader, other *member) {
	for {
		for i, m := range members {
			if m.writer.Leading() {
				return m, members[len(members)-1-i]
			}
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// leading returns a server with an object "o", and a leading writer that has written its status. It
// is called in a bubble.
func leading(t *testing.T) (*fakeAPI, *member) {
	t.Helper()
	api := &fakeAPI{stored: map[string]map[string]any{}}
	api.add("o", "")
	m := api.join(t, "a", leaseOptions())
	elected(m)
	time.Sleep(time.Second)
	return api, m
}

// TestLeadershipEndsWithoutAnswers: a leader that cannot renew the Lease stops before another one
// begins, even while its requests hang.
func TestLeadershipEndsWithoutAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := &fakeAPI{stored: map[string]map[string]any{}}
		leader, other := elected(api.join(t, "a", leaseOptions()), api.join(t, "b", leaseOptions()))
		leader.on(func(r *http.Request) func() { // never an answer
			return func() { <-r.Context().Done() }
		})
		begin, ended := time.Now(), time.Duration(0)
		for ; !other.writer.Leading(); time.Sleep(time.Millisecond) {
			if ended == 0 && !leader.writer.Leading() {
				ended = time.Since(begin)
			}
		}
		took := time.Since(begin)
		if leader.writer.Leading() {
			t.Fatal("both lead")
		}
		// The server has executed a hanging request: one renewal that the leader does not know of.
		if ended > 2*time.Second || took < ended+time.Second/2 || took > 5*time.Second {
			t.Errorf("leadership has ended after %v, and begun after %v", ended, took)
		}
		leader.on(nothing)
		for range 1000 {
			time.Sleep(10 * time.Millisecond)
			if leader.writer.Leading() {
				t.Fatal("the former leader leads again")
			}
		}
	})
}

// TestReleased: a leader that stops lets another process lead at once.
func TestReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := &fakeAPI{stored: map[string]map[string]any{}}
		a := api.join(t, "a", leaseOptions())
		elected(a)
		a.leave()
		begin := time.Now()
		if a.writer.Leading() {
			t.Error("it leads after Run has returned")
		}
		elected(api.join(t, "b", leaseOptions()))
		if took := time.Since(begin); took > time.Second {
			t.Errorf("the next one has taken over after %v", took)
		}
	})
}

// TestWritesEndWithTheLease: a write ends with the leadership.
func TestWritesEndWithTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := &fakeAPI{stored: map[string]map[string]any{}}
		m := api.join(t, "a", leaseOptions())
		elected(m)
		var writes atomic.Int32
		m.on(func(r *http.Request) func() {
			if r == nil {
				return func() {}
			}
			if r.Method == http.MethodPut && !isLease(r) {
				writes.Inc()
				deadline, ok := r.Context().Deadline()
				if left := m.writer.election.Remaining(); !ok || time.Until(deadline) > left {
					t.Errorf("a write may take %v, leadership lasts %v", time.Until(deadline), left)
				}
			}
			return func() {}
		})
		api.add("o", "")
		time.Sleep(time.Minute)
		if got := api.message("o", "Accepted"); got != "True " || writes.Load() != 1 {
			t.Errorf("the condition is %q after %d writes", got, writes.Load())
		}
	})
}

// conflicted makes a member write an object that another writer changes before the first write
// arrives, and returns the number of writes. While deaf is set no response about the Lease arrives.
func conflicted(t *testing.T, api *fakeAPI, deaf *atomic.Bool, meanwhile func(m *member)) int32 {
	t.Helper()
	m := api.join(t, "a", leaseOptions())
	elected(m)
	var writes atomic.Int32
	m.on(func(r *http.Request) func() {
		if r != nil && r.Method == http.MethodPut && !isLease(r) && writes.Inc() == 1 {
			api.setStatus("o", `{"of":"others"}`)
			meanwhile(m)
		}
		return func() {
			if r != nil && isLease(r) && deaf.Load() {
				<-r.Context().Done()
			}
		}
	})
	api.add("o", "")
	time.Sleep(10 * time.Second)
	return writes.Load()
}

// TestAttemptsDecideAnew: a write that reads the object again computes the status again, and checks
// the leadership again.
func TestAttemptsDecideAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, deaf := &fakeAPI{stored: map[string]map[string]any{}}, &atomic.Bool{}
		writes := conflicted(t, api, deaf, func(m *member) {
			m.writer.Report(bubbleKey("o"), Condition{Type: "Host", Message: "new"})
		})
		if got := api.message("o", "Host"); got != "False new" || writes != 2 {
			t.Errorf("the condition is %q after %d writes", got, writes)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		api, deaf := &fakeAPI{stored: map[string]map[string]any{}}, &atomic.Bool{}
		writes := conflicted(t, api, deaf, func(m *member) {
			deaf.Store(true)
			e := m.writer.election
			e.mu.Lock()
			defer e.mu.Unlock()
			e.renewed = time.Time{}
		})
		if got := api.message("o", "Accepted"); got != "" || writes != 1 {
			t.Errorf("without leadership the condition is %q after %d writes", got, writes)
		}
	})
}

// TestLeaseGivenAway: a leader that finds another holder of the Lease stops leading.
func TestLeaseGivenAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := &fakeAPI{stored: map[string]map[string]any{}}
		m := api.join(t, "a", leaseOptions())
		elected(m)
		api.mu.Lock()
		lease := clone(api.stored["lease"])
		lease["spec"].(map[string]any)["holderIdentity"] = "somebody"
		api.put("lease", lease)
		api.mu.Unlock()
		time.Sleep(time.Second)
		if m.writer.Leading() {
			t.Error("it leads beside the holder")
		}
		time.Sleep(5 * time.Second)
		if !m.writer.Leading() {
			t.Error("it does not take over from a holder that never was")
		}
	})
}

// TestNewLeaderLooksAtAll: the next leader makes the writes and repairs that nobody could make
// before.
func TestNewLeaderLooksAtAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := &fakeAPI{stored: map[string]map[string]any{}}
		api.add("o", "")
		leader, other := elected(api.join(t, "a", leaseOptions()), api.join(t, "b", leaseOptions()))
		leader.on(func(r *http.Request) func() {
			return func() {
				if r != nil {
					<-r.Context().Done()
				}
			}
		})
		for leader.writer.Leading() {
			time.Sleep(10 * time.Millisecond)
		}
		api.setStatus("o", `{}`)
		api.add("new", "")
		for !other.writer.Leading() {
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(time.Second)
		for _, name := range []string{"o", "new"} {
			if got := api.message(name, "Accepted"); got != "True " {
				t.Errorf("the condition of %s is %q", name, got)
			}
		}
	})
}

// TestLeadershipWithAGap: leadership that ends while its renewal is in flight, and begins with it,
// is a new one, so that changes in between are not lost.
func TestLeadershipWithAGap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := &fakeAPI{stored: map[string]map[string]any{}}
		m := api.join(t, "a", leaseOptions())
		elected(m)
		var gap atomic.Bool
		m.on(func(r *http.Request) func() {
			if r != nil && isLease(r) && gap.CompareAndSwap(false, true) {
				e := m.writer.election
				e.mu.Lock()
				e.renewed = time.Now().Add(-e.lasts() + 50*time.Millisecond)
				e.mu.Unlock()
				time.Sleep(100 * time.Millisecond)
				api.add("o", "")
				time.Sleep(100 * time.Millisecond)
			}
			return func() {}
		})
		time.Sleep(10 * time.Second)
		if got := api.message("o", "Accepted"); got != "True " {
			t.Errorf("the condition is %q", got)
		}
	})
}

// skewed returns a clock with an offset and another speed.
func skewed(offset time.Duration, speed float64) func() time.Time {
	begin := time.Now()
	return func() time.Time {
		return begin.Add(offset + time.Duration(float64(time.Since(begin))*speed)).Round(0)
	}
}

// TestClocks: processes need not agree about the time. Their clocks may differ in speed
// by a third.
func TestClocks(t *testing.T) {
	for name, clocks := range map[string][2]func() func() time.Time{
		"Years":  {func() func() time.Time { return skewed(-87600*time.Hour, 1) }, func() func() time.Time { return skewed(87600*time.Hour, 1) }},
		"Slow":   {func() func() time.Time { return skewed(0, 0.75) }, func() func() time.Time { return skewed(0, 1) }},
		"Fast":   {func() func() time.Time { return skewed(0, 1.3) }, func() func() time.Time { return skewed(time.Hour, 1) }},
		"Behind": {func() func() time.Time { return skewed(-time.Second, 1) }, func() func() time.Time { return skewed(0, 1) }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api := &fakeAPI{stored: map[string]map[string]any{}}
				var members [2]*member
				var silent [2]atomic.Bool
				for i := range members {
					members[i] = api.join(t, fmt.Sprint("m", i), leaseOptions(), func(m *member) { m.writer.now = clocks[i]() })
					members[i].on(func(r *http.Request) func() {
						return func() {
							if r != nil && silent[i].Load() {
								<-r.Context().Done()
							}
						}
					})
				}
				for range 20 { // The leader is deaf from now on.
					leader, other := elected(members[0], members[1])
					at := 0
					if leader == members[1] {
						at = 1
					}
					silent[at].Store(true)
					for began := time.Now(); !other.writer.Leading(); time.Sleep(time.Millisecond) {
						if time.Since(began) > 20*time.Second {
							t.Fatal("nobody takes over")
						}
					}
					if leader.writer.Leading() {
						t.Fatal("both lead")
					}
					silent[at].Store(false)
				}
			})
		})
	}
}

// gate suspends a process from the point of view of others: neither its requests nor their
// responses arrive, for any time.
type gate struct {
	mu   sync.Mutex
	open chan struct{}
}

func newGate() *gate {
	g := &gate{open: make(chan struct{})}
	close(g.open)
	return g
}

func (g *gate) stop() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open = make(chan struct{})
}

func (g *gate) proceed() { close(g.open) }

func (g *gate) pass() {
	g.mu.Lock()
	open := g.open
	g.mu.Unlock()
	<-open
}

// TestPauses: two processes that are suspended at random, 1,000 times, write the correct status in
// the end, and no process sends a write while another one leads. A write that was decided before
// the suspension may arrive after it: one write per worker, if the object has not changed since.
func TestPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := &fakeAPI{stored: map[string]map[string]any{}}
		const objects = 5
		interruptions := tier.Share(500)
		for i := range objects {
			api.add(fmt.Sprint("o-", i), acceptedStatus)
		}
		opts := leaseOptions()
		opts.Workers = 2
		var truth, late, pauses atomic.Int32
		var members [2]*member
		var gates [2]*gate
		for i := range members {
			gates[i] = newGate()
			members[i] = api.join(t, fmt.Sprint("m", i), opts)
		}
		for i, m := range members {
			other := members[1-i]
			m.on(func(r *http.Request) func() {
				write := r != nil && r.Method == http.MethodPut && !isLease(r)
				if write && other.writer.Leading() && m.writer.Leading() {
					t.Error("a write is sent while another process leads")
				}
				time.Sleep(rand.N(300 * time.Millisecond)) // It is decided, and not sent yet.
				gates[i].pass()
				if write && other.writer.Leading() {
					late.Inc()
				}
				return gates[i].pass
			})
		}
		stop := make(chan struct{})
		var running, disturbing sync.WaitGroup
		for i, m := range members {
			running.Go(func() { // the process's own view
				for {
					select {
					case <-stop:
						return
					case <-time.After(300 * time.Millisecond):
					}
					gates[i].pass()
					for o := range objects {
						m.writer.Report(bubbleKey(fmt.Sprint("o-", o)), Condition{Type: "Host", True: true, Message: fmt.Sprint(truth.Load())})
					}
				}
			})
		}
		r := rand.New(rand.NewPCG(1, 1))
		disturbing.Go(func() {
			for range interruptions {
				time.Sleep(time.Duration(r.IntN(3000)) * time.Millisecond)
				truth.Inc()
				if r.IntN(3) == 0 {
					api.setStatus(fmt.Sprint("o-", r.IntN(objects)), `{"conditions":[{"type":"Host","status":"False","message":"no"}]}`)
				}
			}
		})
		for i := range members {
			random := rand.New(rand.NewPCG(2, uint64(i)))
			disturbing.Go(func() {
				for range interruptions {
					time.Sleep(time.Duration(random.IntN(4000)) * time.Millisecond)
					gates[i].stop()
					pauses.Inc()
					time.Sleep(time.Duration(random.IntN(6000)) * time.Millisecond)
					gates[i].proceed()
				}
			})
		}
		disturbing.Wait()
		time.Sleep(3 * time.Minute)
		close(stop)
		running.Wait()
		if int(pauses.Load()) != 2*interruptions {
			t.Errorf("there were %d pauses", pauses.Load())
		}
		for i := range objects {
			name := fmt.Sprint("o-", i)
			if got, want := api.message(name, "Host"), fmt.Sprint("True ", truth.Load()); got != want {
				t.Errorf("the condition of %s is %q, want %q", name, got, want)
			}
			if got := api.message(name, "Accepted"); got != "True " {
				t.Errorf("the condition of %s is %q", name, got)
			}
		}
		if most := pauses.Load() * int32(opts.Workers); late.Load() > most {
			t.Errorf("%d writes have arrived late, at %d pauses", late.Load(), pauses.Load())
		}
		t.Logf("%d of the writes have arrived after another process had begun to lead", late.Load())
	})
}
