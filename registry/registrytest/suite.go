// SPDX-License-Identifier: Apache-2.0

package registrytest

import (
	"cmp"
	"slices"
	"time"

	"github.com/pilotkit/pilotkit/internal/test/contract"
	"github.com/pilotkit/pilotkit/registry"
)

// check tests one promise.
type check = contract.Check[*suite]

// suite is the state of one check of one subject.
type suite struct {
	*contract.T
	subject Subject
	reg     registry.Instance
}

// setUp returns a function that creates the suite of a check.
func setUp(factory Factory) func(*contract.T) *suite {
	return func(t *contract.T) *suite { return newSuite(t, factory(t.TB)) }
}

func newSuite(t *contract.T, subject Subject) *suite {
	t.Helper()
	if subject.Registry == nil || subject.Set == nil || subject.Remove == nil {
		t.Fatalf("registrytest: the factory returned a Subject without Registry, Set or Remove")
	}
	if (subject.SetWorkload == nil) != (subject.RemoveWorkload == nil) {
		t.Fatalf("registrytest: SetWorkload and RemoveWorkload go together")
	}
	t.Timeout = cmp.Or(subject.Timeout, 10*time.Second)
	return &suite{T: t, subject: subject, reg: subject.Registry}
}

func (s *suite) catchUp() {
	if s.subject.CatchUp != nil {
		s.subject.CatchUp()
	}
}

// set and remove change the registry and wait until the change is visible.
func (s *suite) set(f fixture) {
	s.subject.Set(f.service(), f.endpoints())
	s.catchUp()
}

func (s *suite) remove(f fixture) {
	s.subject.Remove(f.hostname, f.namespace)
	s.catchUp()
}

// expectServices requires exactly these services, in this order, with their endpoints.
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
		s.Broken("Services() = %v, want %v", got, wanted)
		return
	}
	for i, f := range want {
		s.expectInstances(services[i], f)
	}
}

// expectInstances requires exactly the endpoints of a service, on all ports.
func (s *suite) expectInstances(service *registry.Service, f fixture) {
	s.Helper()
	got := describeInstances(s.reg.InstancesByPort(service, 0))
	if want := f.describeEndpoints(0); !slices.Equal(got, want) {
		s.Broken("InstancesByPort(%s, 0) = %v, want %v", describe(service), got, want)
	}
}
