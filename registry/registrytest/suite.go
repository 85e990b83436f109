// SPDX-License-Identifier: Apache-2.0

package registrytest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/pilotkit/pilotkit/registry"
)

// suite is one check at work on one subject.
type suite struct {
	testing.TB
	check   check
	subject Subject
	reg     registry.Instance
}

func newSuite(tb testing.TB, c check, subject Subject) *suite {
	tb.Helper()
	if subject.Registry == nil || subject.Set == nil || subject.Remove == nil {
		tb.Fatalf("registrytest: the factory returned a Subject without Registry, Set or Remove")
	}
	if (subject.SetWorkload == nil) != (subject.RemoveWorkload == nil) {
		tb.Fatalf("registrytest: SetWorkload and RemoveWorkload go together")
	}
	if subject.Timeout == 0 {
		subject.Timeout = 10 * time.Second
	}
	return &suite{TB: tb, check: c, subject: subject, reg: subject.Registry}
}

// broken reports that the promise is not kept.
func (s *suite) broken(format string, args ...any) {
	s.Helper()
	s.Errorf("%s", s.report(format, args...))
}

// stop is broken for when nothing more can be learnt.
func (s *suite) stop(format string, args ...any) {
	s.Helper()
	s.Fatalf("%s", s.report(format, args...))
}

func (s *suite) report(format string, args ...any) string {
	return fmt.Sprintf("broken promise: %s\n\tmade in: %s\n\tseen: %s",
		s.check.promise, s.check.source, fmt.Sprintf(format, args...))
}

func (s *suite) settle() {
	if s.subject.Settle != nil {
		s.subject.Settle()
	}
}

// set and remove change the registry and wait until that shows.
func (s *suite) set(f fixture) {
	s.subject.Set(f.service(), f.endpoints())
	s.settle()
}

func (s *suite) remove(f fixture) {
	s.subject.Remove(f.hostname, f.namespace)
	s.settle()
}

// expectServices demands exactly these services, in this order, with their
// endpoints.
func (s *suite) expectServices(want ...fixture) {
	s.Helper()
	services := s.reg.Services()
	got := make([]string, len(services))
	for i, service := range services {
		got[i] = describe(service)
	}
	wanted := make([]string, len(want))
	for i, f := range want {
		wanted[i] = describe(f.service())
	}
	if !slices.Equal(got, wanted) {
		s.broken("Services() = %v, want %v", got, wanted)
		return
	}
	for i, f := range want {
		s.expectInstances(services[i], f)
	}
}

// expectInstances demands exactly the endpoints of a service, on all ports.
func (s *suite) expectInstances(service *registry.Service, f fixture) {
	s.Helper()
	got := describeInstances(s.reg.InstancesByPort(service, 0))
	if want := f.describeEndpoints(0); !slices.Equal(got, want) {
		s.broken("InstancesByPort(%s, 0) = %v, want %v", describe(service), got, want)
	}
}

// await waits for something that must happen.
func (s *suite) await(done <-chan struct{}, what string) {
	s.Helper()
	s.awaitOpening(done, func() {}, what)
}

// awaitOpening is await; if it does not happen, open lets go what is blocked
// before the suite gives up.
func (s *suite) awaitOpening(done <-chan struct{}, open func(), what string) {
	s.Helper()
	timer := time.NewTimer(s.subject.Timeout)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
		open()
		s.stop("%s has not happened after %v", what, s.subject.Timeout)
	}
}

// within runs f on a goroutine of its own and waits for it.
func (s *suite) within(what string, f func()) {
	s.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	s.await(done, "the end of "+what)
}

// eventually waits for a state of which nothing tells, such as HasSynced.
func (s *suite) eventually(what string, ok func() bool) {
	s.Helper()
	timer := time.NewTimer(s.subject.Timeout)
	defer timer.Stop()
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	for !ok() {
		select {
		case <-ticker.C:
		case <-timer.C:
			s.stop("%s is not so after %v", what, s.subject.Timeout)
		}
	}
}
