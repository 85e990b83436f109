// SPDX-License-Identifier: Apache-2.0

package publish_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pilotkit/pilotkit/internal/cow"
	"github.com/pilotkit/pilotkit/internal/notify"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/internal/publish"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// state is a list of names, each of which is a service and a workload.
type state []string

func (s *state) services() (out []*registry.Service) {
	for _, name := range *s {
		out = append(out, &registry.Service{Hostname: registry.Hostname(name)})
	}
	return out
}

func (s *state) workloads() (out []*registry.WorkloadInstance) {
	for _, name := range *s {
		out = append(out, &registry.WorkloadInstance{Name: name})
	}
	return out
}

// change is what a state with one name more is for everybody.
func change(name string) *publish.Change {
	host, key := registry.Hostname(name), xdsupdate.ServiceKey(registry.Hostname(name), "ns")
	e := endpoint("10.0.0.1", registry.Healthy)
	return &publish.Change{
		Services:       []publish.ServiceUpdate{{Hostname: host, Namespace: "ns", Event: registry.EventAdd}},
		Endpoints:      []publish.EndpointUpdate{{Hostname: host, Namespace: "ns", Endpoints: cow.FromSlice([]*registry.Endpoint{e})}},
		Pushes:         []publish.Push{{Reason: xdsupdate.ReasonService, Key: key}},
		Proxies:        func() []publish.Proxy { return []publish.Proxy{{Cluster: "east", IP: name}} },
		ServiceChanges: []publish.ServiceChange{{Curr: &registry.Service{Hostname: host}, Event: registry.EventAdd}},
		WorkloadChanges: func(yield func(prev, curr *registry.WorkloadInstance) bool) {
			_ = yield(nil, &registry.WorkloadInstance{Name: name}) && yield(nil, nil)
		},
		Gateways: true,
	}
}

// recorder is an updater that writes down its calls, and panics if it is to.
type recorder struct {
	mu     sync.Mutex
	calls  []string
	look   func() string
	panics bool
}

func (r *recorder) note(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	call := fmt.Sprintf(format, args...)
	if r.look != nil {
		call += r.look()
	}
	r.calls = append(r.calls, call)
	if r.panics {
		panic(call)
	}
}

func (r *recorder) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	calls := r.calls
	r.calls = nil
	return calls
}

func (r *recorder) UpdateBatch(publish func(xdsupdate.XDSUpdater)) {
	r.note("begin")
	publish(r)
	r.note("end")
}

func (r *recorder) EDSUpdate(_ xdsupdate.ShardKey, host registry.Hostname, _ string, endpoints []*registry.Endpoint) {
	r.note("eds %s %d", host, len(endpoints))
}

func (r *recorder) EDSCacheUpdate(xdsupdate.ShardKey, registry.Hostname, string, []*registry.Endpoint) {
}

func (r *recorder) SvcUpdate(_ xdsupdate.ShardKey, host registry.Hostname, _ string, e registry.Event) {
	r.note("svc %s %s", host, e)
}

func (r *recorder) ConfigUpdate(req *xdsupdate.PushRequest) {
	var keys []string
	for k := range req.ConfigsUpdated {
		keys = append(keys, k.Name)
	}
	slices.Sort(keys)
	r.note("config %v forced=%t %v", keys, req.Forced, req.Reason)
}
func (r *recorder) ProxyUpdate(_ registry.ClusterID, ip string) { r.note("proxy %s", ip) }
func (r *recorder) RemoveShard(xdsupdate.ShardKey)              {}

// deltaRecorder takes changes of endpoints, too.
type deltaRecorder struct{ *recorder }

func (r deltaRecorder) EDSDeltaUpdate(_ xdsupdate.ShardKey, host registry.Hostname, _ string, changes []xdsupdate.EndpointChange) {
	r.note("delta %s %d", host, len(changes))
}

// subject is a publisher of states to which an event, a name, is added.
type subject struct {
	*publish.Publisher[string, state]
	recorder *recorder
	log      bytes.Buffer
}

func newSubject(inline, commits bool) *subject {
	s := &subject{recorder: &recorder{}}
	opts := publish.Options[string, state]{
		Name: "test", Updater: s.recorder, Initial: &state{}, Inline: inline,
		Services: (*state).services, Workloads: (*state).workloads, Logger: slog.New(slog.NewTextHandler(&s.log, nil)),
	}
	if !commits {
		opts.Handle = func(names []string) {
			for _, name := range names {
				if name == "panic" {
					panic("handle")
				}
				next := append(slices.Clone(*s.State()), name)
				s.Publish(&next, change(name))
			}
		}
	}
	s.Publisher = publish.New(opts)
	return s
}

// observe registers handlers, which write down their calls.
func (s *subject) observe(name string) (cancel func()) {
	cancels := []func(){
		s.SubscribeServices(func(_, curr *registry.Service, e registry.Event) {
			s.recorder.note("%s service %s %s", name, curr.Hostname, e)
		}),
		s.SubscribeWorkloads(func(w *registry.WorkloadInstance, e registry.Event) {
			s.recorder.note("%s workload %s %s", name, w.Name, e)
		}),
		s.SubscribeNetworkGateways(func() { s.recorder.note("%s gateways", name) }),
	}
	return func() {
		for _, cancel := range cancels {
			cancel()
		}
	}
}

func (s *subject) add(name string) {
	s.Commit(func(old *state) (*state, *publish.Change, error) { //nolint:errcheck // it returns none
		next := append(slices.Clone(*old), name)
		return &next, change(name), nil
	})
}

func (s *subject) expect(t *testing.T, what string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, s.recorder.take()); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// TestOrder: a change becomes visible and is reported in one batch of the updater, then
// proxies and handlers learn of it. New handlers get what there is.
func TestOrder(t *testing.T) {
	t.Parallel()
	for _, commits := range []bool{false, true} {
		s := newSubject(true, commits)
		add := func(name string) { s.Enqueue(name) }
		if commits {
			add = s.add
		}
		s.recorder.look = func() string { return fmt.Sprint(" ", len(*s.State())) }
		add("a")
		s.expect(t, "no handlers", "begin 1", "svc a add 1", "eds a 1 1", "config [a] forced=false map[service:1] 1", "proxy a 1", "end 1")
		cancel := s.observe("h")
		s.expect(t, "new handlers", "h service a add 1", "h workload a add 1")
		add("b")
		s.expect(t, "handlers", "begin 2", "svc b add 2", "eds b 1 2", "config [b] forced=false map[service:1] 2", "proxy b 2", "end 2",
			"h service b add 2", "h workload b add 2", "h gateways 2")
		cancel()
		if add("c"); slices.ContainsFunc(s.recorder.take(), func(c string) bool { return strings.HasPrefix(c, "h ") }) {
			t.Error("handlers after they were cancelled")
		}
	}
}

// TestRegistration: a handler that is registered while the registry is about to publish
// gets what is published in its turn, after the handlers before it, and once.
func TestRegistration(t *testing.T) {
	t.Parallel()
	s := newSubject(false, false)
	s.observe("first")
	s.Enqueue("a", "b")
	s.recorder.look = func() string {
		s.recorder.look = nil
		s.observe("second") // while the first state becomes visible
		return ""
	}
	s.Drain()
	s.recorder.calls = slices.DeleteFunc(s.recorder.calls, func(c string) bool {
		return !strings.Contains(c, " service ") && !strings.Contains(c, " workload ")
	})
	s.expect(t, "calls", "first service a add", "second service a add", "first workload a add", "second workload a add",
		"first service b add", "second service b add", "first workload b add", "second workload b add")
	s.observe("third")
	s.Drain()
	s.expect(t, "later", "third service a add", "third service b add", "third workload a add", "third workload b add")
}

// TestPanics: whatever panics, everything else goes on, and each panic is logged once.
func TestPanics(t *testing.T) {
	t.Parallel()
	for _, commits := range []bool{false, true} {
		s := newSubject(true, commits)
		s.observe("h")
		s.recorder.panics = true
		if commits {
			s.add("a")
		} else {
			s.Enqueue("panic")
			s.Enqueue("a")
		}
		s.expect(t, "calls", "begin", "svc a add", "eds a 1", "config [a] forced=false map[service:1]", "proxy a",
			"h service a add", "h workload a add", "h gateways")
		if n, want := strings.Count(s.log.String(), "level=ERROR"), map[bool]int{false: 9, true: 8}[commits]; n != want {
			t.Errorf("%d panics are logged, want %d:\n%s", n, want, s.log.String())
		}
	}
}

// TestReport: keys of one reason are one request, endpoints a delta if that is shorter,
// and a new updater is called instead of the old one.
func TestReport(t *testing.T) {
	t.Parallel()
	s := newSubject(true, true)
	s.SetUpdater(deltaRecorder{s.recorder})
	key := func(name registry.Hostname) xdsupdate.ConfigKey { return xdsupdate.ServiceKey(name, "ns") }
	a, b := endpoint("10.0.0.1", registry.Healthy), endpoint("10.0.0.2", registry.Healthy)
	list := cow.FromSlice([]*registry.Endpoint{a, b})
	report := func(c *publish.Change) {
		_ = s.Commit(func(*state) (*state, *publish.Change, error) { return &state{}, c, nil })
	}
	report(&publish.Change{
		Endpoints: []publish.EndpointUpdate{
			{Hostname: "short", Endpoints: list, Changes: []xdsupdate.EndpointChange{{New: b}}},
			{Hostname: "long", Endpoints: list, Changes: []xdsupdate.EndpointChange{{New: a}, {New: b}}},
			{Hostname: "complete", Endpoints: list},
		},
		Pushes: []publish.Push{
			{xdsupdate.ReasonService, key("a")},
			{xdsupdate.ReasonEndpoint, key("c")},
			{xdsupdate.ReasonService, key("b")},
			{xdsupdate.ReasonService, key("a")},
			{"networks", xdsupdate.ConfigKey{}},
			{"networks", key("d")},
		},
	})
	s.expect(t, "calls", "begin", "delta short 1", "eds long 2", "eds complete 2",
		"config [a b] forced=false map[service:1]", "config [c] forced=false map[endpoint:1]", "config [] forced=true map[networks:1]",
		"config [d] forced=false map[networks:1]", "end")
	s.SetUpdater(nil)
	report(change("a"))
	s.expect(t, "calls without an updater")
}

// TestCommit: an error, and a state that is the same, change nothing. Commits from
// within handlers and from many goroutines are all reported, one at a time.
func TestCommit(t *testing.T) {
	t.Parallel()
	s := newSubject(true, true)
	refused := errors.New("refused")
	err := s.Commit(func(*state) (*state, *publish.Change, error) { return &state{"x"}, change("x"), refused })
	if !errors.Is(err, refused) || len(*s.State()) != 0 {
		t.Errorf("error %v, %d names", err, len(*s.State()))
	}
	_ = s.Commit(func(old *state) (*state, *publish.Change, error) { return old, change("x"), nil })
	s.expect(t, "nothing")
	s.SubscribeServices(func(_, curr *registry.Service, _ registry.Event) {
		if curr.Hostname == "a" {
			s.add("within")
		}
	})
	s.observe("h")
	s.add("a")
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() { s.add(fmt.Sprint("n", i)) })
	}
	group.Wait()
	if err := s.Flush(context.Background()); err != nil {
		t.Error(err)
	}
	var reported, notified []string
	for _, call := range s.recorder.take() {
		var name string
		if n, _ := fmt.Sscanf(call, "svc %s", &name); n == 1 {
			reported = append(reported, name)
		} else if n, _ := fmt.Sscanf(call, "h service %s", &name); n == 1 {
			notified = append(notified, name)
		}
	}
	for who, got := range map[string][]string{"the updater": reported, "handlers": notified} {
		if diff := cmp.Diff([]string(*s.State()), got); diff != "" {
			t.Errorf("what %s heard is not the order of the commits (-want +got):\n%s", who, diff)
		}
	}
}

// TestRun: nothing is handled after Run has ended.
func TestRun(t *testing.T) {
	t.Parallel()
	for _, commits := range []bool{false, true} {
		s := newSubject(true, commits)
		stop := make(chan struct{})
		close(stop)
		s.Run(stop)
		if commits {
			s.add("a")
		} else {
			s.Enqueue("a")
		}
		for _, call := range s.recorder.take() {
			if call != "begin" && call != "end" {
				t.Errorf("%s after Run has ended", call)
			}
		}
		if err := s.Flush(context.Background()); !errors.Is(err, notify.ErrStopped) {
			t.Errorf("Flush returns %v", err)
		}
	}
}
