// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// writes records the written objects, with the time since the beginning.
type writes struct {
	mu    sync.Mutex
	begin time.Time
	names []string
	at    map[string]time.Duration // the first time
	count map[string]int
}

func recordWrites(m *member) *writes {
	w := &writes{begin: time.Now(), at: map[string]time.Duration{}, count: map[string]int{}}
	m.on(func(r *http.Request) func() {
		if r != nil && r.Method == http.MethodPut && strings.HasSuffix(r.URL.Path, "/status") {
			name := strings.TrimSuffix(strings.TrimPrefix(r.URL.Path, limitsPath), "/status")
			w.mu.Lock()
			defer w.mu.Unlock()
			if w.count[name]++; w.count[name] == 1 {
				w.names, w.at[name] = append(w.names, name), time.Since(w.begin)
			}
		}
		return func() {}
	})
	return w
}

func (w *writes) of(name string) (n int, first time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.count[name], w.at[name]
}

// TestStartCostsNothing: correct statuses take no request, for any number of objects, and changes
// do not wait for them.
func TestStartCostsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := &fakeAPI{stored: map[string]map[string]any{}}
		for i := range 5000 {
			api.add(fmt.Sprint("o-", i), acceptedStatus)
		}
		m := api.join(t, "a", StatusOptions{Rate: 10})
		elected(m)
		synctest.Wait()
		if n := m.requests.Load(); n > 0 {
			t.Errorf("there were %d requests for nothing", n)
		}
		w := recordWrites(m)
		api.add("new", "")
		time.Sleep(time.Minute)
		if n, at := w.of("new"); n != 1 || at > 0 || m.requests.Load() != 2 {
			t.Errorf("the new object was written %d times, after %v, in %d requests", n, at, m.requests.Load())
		}
	})
}

// TestChangesComeFirst: changes do not wait while a new leader updates many statuses, and all
// statuses are written in the end.
func TestChangesComeFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := &fakeAPI{stored: map[string]map[string]any{}}
		const objects, perSecond = 500, 10
		for i := range objects {
			api.add(fmt.Sprint("o-", i), `{"observedGeneration":1,"conditions":[{"type":"Accepted","status":"True","reason":"OfAnOlderVersion"}]}`)
		}
		var w *writes
		m := api.join(t, "a", StatusOptions{Rate: perSecond, Workers: 2}, func(m *member) { w = recordWrites(m) })
		time.Sleep(5 * time.Second)
		api.add("new", "")
		m.writer.Report(bubbleKey("o-499"), Condition{Type: "Host", Message: "changed"}) // It is queued already.
		time.Sleep(2 * time.Minute)
		for _, name := range []string{"new", "o-499"} {
			if n, at := w.of(name); n != 1 || at > 6*time.Second {
				t.Errorf("%s was written %d times, after %v", name, n, at)
			}
		}
		if len(w.names) != objects+1 {
			t.Errorf("%d objects were written", len(w.names))
		}
		// The burst is one second's number of writes.
		if _, at := w.of(w.names[objects]); at < time.Second*(objects-perSecond-1)/perSecond {
			t.Errorf("all were written within %v", at)
		}
	})
}

// TestWorkers: writes are concurrent, so that slow responses do not limit their number per second.
func TestWorkers(t *testing.T) {
	for workers, most := range map[int]time.Duration{1: 21 * time.Second, 8: 2600 * time.Millisecond} {
		t.Run(fmt.Sprint(workers), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api := &fakeAPI{stored: map[string]map[string]any{}}
				const objects = 200
				for i := range objects {
					api.add(fmt.Sprint("o-", i), "")
				}
				begin := time.Now()
				api.join(t, "a", StatusOptions{Rate: 10_000, Workers: workers}, func(m *member) {
					m.on(func(*http.Request) func() { return func() { time.Sleep(50 * time.Millisecond) } })
				})
				for i := range objects {
					for api.message(fmt.Sprint("o-", i), "Accepted") == "" {
						time.Sleep(10 * time.Millisecond)
					}
				}
				if took := time.Since(begin); took > most || took < most*9/10 {
					t.Errorf("%d statuses took %v, want %v at most", objects, took, most)
				}
			})
		})
	}
}

// TestRepairs: a foreign change of the writer's conditions is repaired at once, and with increasing
// delays if it recurs. Foreign fields stay.
func TestRepairs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, m := leading(t)
		w := recordWrites(m)
		broken := `{"observedGeneration":1,"foreign":1,"conditions":[{"type":"Accepted","status":"False","reason":"Theirs"}]}`
		api.setStatus("o", broken)
		synctest.Wait()
		if got := api.message("o", "Accepted"); got != "True " {
			t.Errorf("the condition is %q", got)
		}
		stop := make(chan struct{})
		var other sync.WaitGroup
		other.Go(func() {
			for {
				select {
				case <-stop:
					return
				case <-time.After(100 * time.Millisecond):
					if api.message("o", "Accepted") == "True " {
						api.setStatus("o", broken)
					}
				}
			}
		})
		time.Sleep(10 * time.Minute)
		close(stop)
		other.Wait()
		if n, _ := w.of("o"); n < 10 || n > 20 { // 1, 2, 4, ... 32 s, and then once a minute
			t.Errorf("there were %d repairs in 10 minutes", n)
		}
		time.Sleep(2 * time.Minute)
		if got := api.message("o", "Accepted"); got != "True " {
			t.Errorf("in the end the condition is %q", got)
		}
		time.Sleep(2 * time.Minute)
		n, _ := w.of("o")
		api.setStatus("o", broken)
		synctest.Wait()
		if m, _ := w.of("o"); m != n+1 {
			t.Error("after a time of peace a repair is not made at once")
		}
		api.setStatus("o", broken)
		time.Sleep(2 * time.Second)
		if got := api.message("o", "Accepted"); got != "True " {
			t.Error("after a time of peace the second repair has to wait as before")
		}
	})
}

// TestStatusThatCannotBeRead: a status that cannot be extended is left alone, without requests,
// until it changes.
func TestStatusThatCannotBeRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := &fakeAPI{stored: map[string]map[string]any{}}
		api.add("o", `{"conditions":"none"}`)
		m := api.join(t, "a", leaseOptions())
		elected(m)
		w := recordWrites(m)
		time.Sleep(10 * time.Minute)
		if n, _ := w.of("o"); n > 0 {
			t.Errorf("it was written %d times", n)
		}
		api.setStatus("o", `{"conditions":[]}`)
		synctest.Wait()
		if n, _ := w.of("o"); n != 1 {
			t.Errorf("after its repair it was written %d times", n)
		}
	})
}
