// SPDX-License-Identifier: Apache-2.0

package registrytest_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/pilotkit/pilotkit/registry/registrytest"
)

func TestUnbrokenPasses(t *testing.T) { registrytest.TestInstance(t, factory("")) }

// teeth has broken registries for each check.
func teeth() map[string][]string {
	return map[string][]string{
		"Reads/Empty":           {"an empty registry has a service", "everybody is known"},
		"Reads/Services":        {"lists are not sorted", "reads lag"},
		"Reads/GetService":      {"the youngest wins", "services cannot go"},
		"Reads/InstancesByPort": {"ports are ignored", "instances are not sorted"},
		"Reads/Update":          {"endpoints cannot go", "reads lag"},
		"Reads/Remove":          {"services cannot go"},
		"Reads/Immutable":       {"lists change in place"},
		"Proxy/Instances":       {"the first address only", "the namespace is required"},
		"Proxy/Namespace":       {"the namespace is ignored"},
		"Proxy/Follows":         {"addresses stay"},
		"Events/Add":            {"adds have a prev", "events are repeated", "curr is a stranger"},
		"Events/Update":         {"updates have no prev"},
		"Events/Delete":         {"deletes have a prev", "deletes are dropped"},
		"Events/Nothing":        {"equal services are updates"},
		"Events/Order":          {"deletes are dropped", "events are repeated"},
		"Events/Fresh":          {"reads lag"},
		"Handlers/Replay":       {"no replay"},
		"Handlers/Order":        {"handlers run in reverse"},
		"Handlers/CallBack":     {"handlers run under the lock"},
		"Handlers/Block":        {"readers take the lock held by handlers"},
		"Handlers/OneAtATime":   {"handlers run at once"},
		"Subscribe/Cancel":      {"cancel does nothing"},
		"Workloads/Events":      {"workload updates are adds", "events are repeated"},
		"Workloads/Nothing":     {"equal workloads are updates"},
		"Workloads/Replay":      {"no replay"},
		"Workloads/CallBack":    {"handlers run under the lock"},
		"Gateways/Read":         {"gateways are not sorted"},
		"Gateways/Handler":      {"gateway handlers are called for services"},
		"Identity":              {"no provider"},
		"HasSynced":             {"never synced"},
		"Run/Stop":              {"run returns at once", "run is deaf"},
		"Run/Twice":             {"run twice is fine"},
		"History":               {"deletes are dropped", "addresses stay", "equal services are updates"},
	}
}

func TestEveryBrokenPromiseIsFound(t *testing.T) {
	faults := teeth()
	for _, check := range registrytest.CheckNames() {
		if len(faults[check]) == 0 {
			t.Errorf("no broken registry proves the check %s", check)
		}
		for _, fault := range faults[check] {
			t.Run(check+"/"+fault, func(t *testing.T) { expectFound(t, check, fault) })
		}
	}
}

func expectFound(t *testing.T, check, fault string) {
	t.Helper()
	var failures []string
	// A race is not lost every time.
	for attempt := 0; attempt < 20 && len(failures) == 0; attempt++ {
		failures = capture(t, func(tb testing.TB) {
			tb.Helper()
			registrytest.RunCheck(tb, check, factory(fault))
		})
	}
	if len(failures) == 0 {
		t.Fatal("the broken registry passes")
	}
	for _, f := range failures {
		if !strings.Contains(f, "broken promise: ") || !strings.Contains(f, "made in: ") {
			t.Errorf("the failure does not name the promise and its source:\n%s", f)
		}
	}
}

// standIn is a testing.TB that keeps the failures to itself.
type standIn struct {
	testing.TB
	mu       sync.Mutex
	failures []string
}

func (s *standIn) Helper() {}

func (s *standIn) Failed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.failures) > 0
}

func (s *standIn) Errorf(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failures = append(s.failures, fmt.Sprintf(format, args...))
}

// fatal is what Fatalf ends a check with.
type fatal struct{}

func (s *standIn) Fatalf(format string, args ...any) {
	s.Errorf(format, args...)
	panic(fatal{})
}

// capture runs f with a stand-in and returns its failures.
func capture(t *testing.T, f func(tb testing.TB)) []string {
	t.Helper()
	s := &standIn{TB: t}
	func() {
		defer func() {
			if r := recover(); r != nil && r != any(fatal{}) {
				panic(r)
			}
		}()
		f(s)
	}()
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.failures)
}
