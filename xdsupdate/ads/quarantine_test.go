// SPDX-License-Identifier: Apache-2.0

package ads_test

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

// judge is a client that rejects resources with a bad value of some object.
type judge struct {
	*xdstest.Client
	mu      sync.Mutex
	bad     func(value string) bool
	sotw    bool
	has     map[string]map[string]string
	failed  map[string]bool // the objects that some accepted state was without
	answers int
}

// newJudge returns one that is not connected yet.
func newJudge(bad func(value string) bool) *judge {
	return &judge{bad: bad, has: make(map[string]map[string]string), failed: make(map[string]bool)}
}

func (j *judge) answer(r xdstest.Response) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.answers++
	listed := make(map[string]bool)
	var refused []string
	for i, res := range r.Resources {
		m, err := res.Message()
		if err != nil {
			return err
		}
		name, values := r.Names()[i], valuesOf(m)
		listed[name] = true
		if slices.ContainsFunc(slices.Collect(maps.Values(values)), j.bad) {
			refused = append(refused, "Error adding/updating "+name+": bad value")
			if r.TypeURL == envoy.RouteType {
				return errors.New("bad value")
			}
			continue
		}
		j.has[name] = values
		for object, value := range values {
			j.failed[object] = j.failed[object] || value == "failing"
		}
	}
	for _, name := range r.Removed {
		delete(j.has, name)
	}
	if j.sotw && r.TypeURL == envoy.ListenerType {
		maps.DeleteFunc(j.has, func(name string, _ map[string]string) bool { return !listed[name] })
	}
	if refused != nil {
		return errors.New(strings.Join(refused, "\n"))
	}
	return nil
}

// count returns the number of responses.
func (j *judge) count() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.answers
}

func (j *judge) state(resource string) map[string]string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return maps.Clone(j.has[resource])
}

// quarantineScene is a server of a sharedProvider with clients that judge.
type quarantineScene struct {
	*fixture
	provider *sharedProvider
	log      *lockedBuffer
}

func newQuarantineScene(t *testing.T, typeURL string) *quarantineScene {
	t.Helper()
	p := &sharedProvider{typeURL: typeURL, objects: make(map[string]map[string]string)}
	s := &quarantineScene{provider: p, log: &lockedBuffer{}}
	s.fixture = serve(t, ads.Options{Providers: []ads.Provider{p}, Logger: slog.New(slog.NewTextHandler(s.log, nil))})
	return s
}

// judge returns a client of some resources.
func (s *quarantineScene) judge(name string, delta bool, bad func(value string) bool, resources ...string) *judge {
	j := newJudge(bad)
	j.sotw = !delta
	j.Client = s.client(xdstest.ClientOptions{Delta: delta, Node: node(name, "shop"), Answer: j.answer})
	if s.provider.typeURL == envoy.ListenerType {
		resources = nil
	}
	s.subscribe(j.Client, s.provider.typeURL, resources...)
	return j
}

// leftOut are the objects that are left out for a client, "RESOURCE OBJECT".
func (s *quarantineScene) leftOut(name string) []string {
	out := []string{}
	faults, _ := s.Faults()
	for _, f := range faults {
		switch {
		case f.Proxy != node(name, "shop").GetId() || f.TypeURL != s.provider.typeURL:
		case f.Status == ads.FaultLeftOut:
			out = append(out, f.Name+" "+f.Object.Name)
		default:
			out = append(out, f.Name+" refused: "+f.Text)
		}
	}
	return out
}

// set changes objects of the resource r, and waits for the answers of the clients.
func (s *quarantineScene) set(values map[string]string) {
	s.provider.set("r", values)
	s.flush()
	synctest.Wait()
}

// waits reports whether a client has to wait for its turn, because it rejects much: the server has not yet taken
// over an answer.
func (s *quarantineScene) waits(name string) bool {
	return slices.ContainsFunc(s.resourcesOf(node(name, "shop").GetId(), s.provider.typeURL), func(r ads.ProxyResource) bool {
		return r.Status == ads.StatusStale
	})
}

// step changes objects of the resource r, and checks what the client "picky" has then and what is
// left out for it.
func (s *quarantineScene) step(picky *judge, what string, values, want map[string]string, leftOut ...string) {
	s.t.Helper()
	s.set(values)
	check(s.t, what, picky.state("r"), want)
	check(s.t, what+": left out", s.leftOut("picky"), append([]string{}, leftOut...))
}

func startsBad(value string) bool { return strings.HasPrefix(value, "bad") }
func nothingIsBad(string) bool    { return false }

func eachShared(t *testing.T, test func(t *testing.T, typeURL string, delta bool)) {
	t.Helper()
	for _, typeURL := range []string{envoy.RouteType, envoy.ListenerType} {
		for protocol, delta := range protocols() {
			t.Run(short(typeURL)+" "+protocol, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { test(t, typeURL, delta) })
			})
		}
	}
}

// TestQuarantine: the contribution of one object to a shared resource is left out for the client
// that rejects it, and for no other. The rest follows changes. When the object changes, it is tried
// again.
func TestQuarantine(t *testing.T) {
	eachShared(t, func(t *testing.T, typeURL string, delta bool) {
		t.Helper()
		s := newQuarantineScene(t, typeURL)
		s.provider.set("r", map[string]string{"a": "1", "b": "1", "c": "1", "d": "1"})
		s.flush()
		picky := s.judge("picky", delta, startsBad, "r")
		other := s.judge("other", delta, nothingIsBad, "r")
		begun := time.Now()
		step := func(what string, values, want map[string]string, leftOut ...string) {
			t.Helper()
			s.step(picky, what, values, want, leftOut...)
			check(t, what+": left out for the other", s.leftOut("other"), []string{})
			for object, value := range values {
				check(t, what+": the other", other.state("r")[object], value)
			}
		}
		synctest.Wait()
		first := picky.count()
		step("bad", map[string]string{"b": "bad"}, map[string]string{"a": "1", "b": "failing", "c": "1", "d": "1"}, "r b")
		if n := picky.count() - first; n != 2 {
			t.Errorf("%d trials for the only change", n)
		}
		err := s.WaitApplied(s.context(), nil)
		var left *ads.Fault
		if !errors.As(err, &left) || !errors.Is(err, ads.ErrRejected) || left.Object != objectKey("b") || left.Name != "r" ||
			left.Proxy == "" || left.Status != ads.FaultLeftOut || !strings.Contains(left.Text, "bad value") {
			t.Errorf("WaitApplied = %v", err)
		}
		step("another changes", map[string]string{"c": "2"}, map[string]string{"a": "1", "b": "failing", "c": "2", "d": "1"}, "r b")
		answers := picky.count()
		step("another one turns bad", map[string]string{"d": "bad"}, map[string]string{"a": "1", "b": "failing", "c": "2", "d": "failing"}, "r b", "r d")
		if n := picky.count() - answers; n != 2 {
			t.Errorf("%d trials for what is the only change", n)
		}
		step("still bad", map[string]string{"b": "bad2"}, map[string]string{"a": "1", "b": "failing", "c": "2", "d": "failing"}, "r b", "r d")
		step("mended", map[string]string{"b": "3"}, map[string]string{"a": "1", "b": "3", "c": "2", "d": "failing"}, "r d")
		step("mended, too", map[string]string{"d": "3"}, map[string]string{"a": "1", "b": "3", "c": "2", "d": "3"})
		if err := s.WaitApplied(s.context(), nil); err != nil {
			t.Error(err)
		}
		made := s.provider.made
		step("good again", map[string]string{"d": "4"}, map[string]string{"a": "1", "b": "3", "c": "2", "d": "4"})
		check(t, "made for nobody", s.provider.made, made)
		check(t, "time taken", time.Since(begun), time.Duration(0))
		if text := s.log.take(); strings.Count(text, "Object/ns/b is left out") != 2 || !strings.Contains(text, "picky") {
			t.Errorf("log:\n%s", text)
		}
	})
}

// TestQuarantineSparesOthers: objects that change together with a rejected one are not left out on
// the way.
func TestQuarantineSparesOthers(t *testing.T) {
	eachShared(t, func(t *testing.T, typeURL string, delta bool) {
		t.Helper()
		s := newQuarantineScene(t, typeURL)
		values := make(map[string]string)
		for i := range 40 {
			values[fmt.Sprintf("o%02d", i)] = "1"
		}
		s.provider.set("r", values)
		s.flush()
		picky := s.judge("picky", delta, startsBad, "r")
		synctest.Wait()
		values = make(map[string]string)
		for i := range 15 {
			values[fmt.Sprintf("o%02d", 2*i)] = "2"
		}
		values["o16"] = "bad"
		s.provider.set("r", values)
		s.flush()
		synctest.Wait()
		check(t, "left out", s.leftOut("picky"), []string{"r o16"})
		check(t, "another one", picky.state("r")["o18"], "2")
		for object, failed := range picky.failed {
			if failed != (object == "o16") {
				t.Errorf("%s was left out: %t", object, failed)
			}
		}
	})
}

// TestQuarantineAtStart: a client that knows nothing yet is served all that is good,
// after few trials.
func TestQuarantineAtStart(t *testing.T) {
	eachShared(t, func(t *testing.T, typeURL string, delta bool) {
		t.Helper()
		s := newQuarantineScene(t, typeURL)
		values, want := make(map[string]string), make(map[string]string)
		for i := range 1000 {
			values[fmt.Sprintf("o%03d", i)] = "1"
			want[fmt.Sprintf("o%03d", i)] = "1"
		}
		values["o617"], want["o617"] = "bad", "failing"
		values["o003"], want["o003"] = "bad", "failing"
		s.provider.set("r", values)
		s.provider.set("q", map[string]string{"o": "1"})
		s.flush()
		picky := s.judge("picky", delta, startsBad, "q", "r")
		synctest.Wait()
		check(t, "state", picky.state("r"), want)
		check(t, "another resource", picky.state("q"), map[string]string{"o": "1"})
		check(t, "left out", s.leftOut("picky"), []string{"r o003", "r o617"})
		if picky.count() > 2*2*10+4 {
			t.Errorf("%d trials", picky.count())
		}
	})
}

// TestQuarantineOfHosts: an object that a client rejects for its matches or its host names is left
// out with these, and the changes of its neighbours arrive.
func TestQuarantineOfHosts(t *testing.T) {
	eachShared(t, func(t *testing.T, typeURL string, delta bool) {
		t.Helper()
		s := newQuarantineScene(t, typeURL)
		s.provider.set("r", map[string]string{"a": "1", "b": "1", "c": "1", "d": "1"})
		s.flush()
		picky := s.judge("picky", delta, startsBad, "r")
		synctest.Wait()
		s.step(picky, "match", map[string]string{"b": "bad-match"}, map[string]string{"a": "1", "b": "failing", "c": "1", "d": "1"}, "r b")
		s.step(picky, "host", map[string]string{"c": "bad-host"}, map[string]string{"a": "1", "b": "failing", "d": "1"}, "r b", "r c")
		s.step(picky, "neighbour", map[string]string{"d": "2"}, map[string]string{"a": "1", "b": "failing", "d": "2"}, "r b", "r c")
		s.step(picky, "mended", map[string]string{"b": "2", "c": "2"}, map[string]string{"a": "1", "b": "2", "c": "2", "d": "2"})

		late := s.judge("late", delta, startsBad, "r") // it has accepted nothing before
		s.provider.set("r", map[string]string{"a": "bad-host"})
		s.flush()
		synctest.Wait()
		check(t, "late", late.state("r"), map[string]string{"b": "2", "c": "2", "d": "2"})
	})
}

// TestAppliedAfterSearches: WaitApplied returns after the searches in several resources of a client, when it has the
// changes of other objects.
func TestAppliedAfterSearches(t *testing.T) {
	eachShared(t, func(t *testing.T, typeURL string, delta bool) {
		t.Helper()
		s := newQuarantineScene(t, typeURL)
		resources := []string{"p", "q", "r"}
		set := func(values map[string]string) {
			t.Helper()
			for _, name := range resources {
				s.provider.set(name, values)
			}
			if err := s.WaitApplied(s.context(), nil); err != nil && !errors.Is(err, ads.ErrRejected) {
				t.Fatal(err)
			}
		}
		set(map[string]string{"a": "1", "b": "1"})
		picky := s.judge("picky", delta, startsBad, resources...)
		synctest.Wait()
		set(map[string]string{"a": "bad-host"})
		check(t, "left out", s.leftOut("picky"), []string{"p a", "q a", "r a"})
		set(map[string]string{"b": "2"})
		for _, name := range resources {
			check(t, "object of "+name, picky.state(name), map[string]string{"b": "2"})
		}
		set(map[string]string{"a": "2"})
		check(t, "left out after the change", s.leftOut("picky"), []string{})
	})
}

// TestQuarantineOfWhatIsRefusedAnyway: a resource that is rejected without any object is rejected
// as a whole, and tried again.
func TestQuarantineOfWhatIsRefusedAnyway(t *testing.T) {
	eachShared(t, func(t *testing.T, typeURL string, delta bool) {
		t.Helper()
		s := newQuarantineScene(t, typeURL)
		s.provider.base = "refused"
		s.provider.set("r", map[string]string{"a": "1", "b": "1", "c": "1"})
		s.flush()
		hostile := s.judge("hostile", delta, func(value string) bool { return value != "good" }, "r")
		synctest.Wait()
		if got := s.leftOut("hostile"); len(got) != 1 || !strings.HasPrefix(got[0], "r refused: ") {
			t.Errorf("left out = %q", got)
		}
		answers := hostile.count()
		if answers > 20 {
			t.Errorf("%d trials", answers)
		}
		if err := s.WaitApplied(s.context(), nil); err == nil || !strings.Contains(err.Error(), "without the contribution of any object") {
			t.Errorf("WaitApplied = %v", err)
		}
		time.Sleep(50 * time.Second)
		synctest.Wait()
		if n := hostile.count() - answers; n < 3 || n > 10 {
			t.Errorf("tried again %d times", n)
		}
		s.provider.base = "good"
		s.provider.set("r", map[string]string{"a": "good", "b": "good", "c": "good"})
		s.flush()
		synctest.Wait()
		check(t, "in the end", hostile.state("r"), map[string]string{"base": "good", "a": "good", "b": "good", "c": "good"})
		check(t, "left out in the end", s.leftOut("hostile"), []string{})
	})
}

// objectsOf are the objects of a list of "RESOURCE OBJECT".
func objectsOf(leftOut []string) map[string]bool {
	out := make(map[string]bool)
	for _, text := range leftOut {
		_, object, _ := strings.Cut(text, " ")
		out[object] = true
	}
	return out
}
