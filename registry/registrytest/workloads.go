// SPDX-License-Identifier: Apache-2.0

package registrytest

import (
	"fmt"
	"slices"
	"sync"

	"github.com/pilotkit/pilotkit/internal/test/contract"
	"github.com/pilotkit/pilotkit/registry"
)

const sourceWorkloadHandler = "registry.WorkloadHandler"

func workloadChecks() []check {
	return []check{
		{
			Name: "Workloads/Events", Source: sourceWorkloadHandler,
			Promise: "workloads are announced as adds, updates and deletes, a delete with the last state that was announced",
			Skip:    noWorkloads, Run: workloadsEvents,
		},
		{
			Name: "Workloads/Nothing", Source: sourcePackage,
			Promise: "a workload that did not change is not announced again",
			Skip:    noWorkloads, Run: workloadsNothing,
		},
		{
			Name: "Workloads/Replay", Source: sourcePackage,
			Promise: "a handler registered when workloads exist first receives an add for each",
			Skip:    noWorkloads, Run: workloadsReplay,
		},
		{
			Name: "Workloads/CallBack", Source: sourcePackage,
			Promise: "a workload handler may read and change the registry: no lock is held",
			Skip:    noWorkloads, Run: workloadsCallBack,
		},
	}
}

func noWorkloads(s *suite) string {
	if s.subject.SetWorkload == nil {
		return "the registry announces no workloads"
	}
	return ""
}

// machine returns a workload with the fields that the suite checks.
func machine(name, address, app string) *registry.WorkloadInstance {
	return &registry.WorkloadInstance{
		Namespace: "retail", Name: name,
		Endpoint: &registry.Endpoint{
			Addresses: []string{address},
			Shared:    &registry.EndpointAttributes{Labels: registry.Labels{"app": app}, Namespace: "retail"},
		},
	}
}

// workloadRecorder records the calls of a workload handler.
type workloadRecorder struct{ contract.Recording[string] }

func (r *workloadRecorder) handle(w *registry.WorkloadInstance, event registry.Event) {
	r.Add(fmt.Sprintf("%s %s/%s %s app=%s", event, w.Namespace, w.Name,
		w.Endpoint.Address(), w.Endpoint.Attributes().Labels["app"]))
}

func (s *suite) setWorkload(w *registry.WorkloadInstance) {
	s.subject.SetWorkload(w)
	s.catchUp()
}

func (s *suite) removeWorkload(name string) {
	s.subject.RemoveWorkload("retail", name)
	s.catchUp()
}

func (s *suite) workloadRecorder() *workloadRecorder {
	r := &workloadRecorder{}
	s.reg.AppendWorkloadHandler(r.handle)
	s.catchUp()
	return r
}

func (s *suite) expectWorkloads(r *workloadRecorder, want ...string) {
	s.Helper()
	if got := r.Take(); !slices.Equal(got, want) {
		s.Broken("handlers received %q, want %q", got, want)
	}
}

func workloadsEvents(s *suite) {
	r := s.workloadRecorder()
	s.setWorkload(machine("vm", "10.5.5.5", "a"))
	s.setWorkload(machine("vm", "10.5.5.5", "b"))
	s.setWorkload(machine("vm", "10.5.5.6", "b"))
	s.removeWorkload("vm")
	s.setWorkload(machine("vm", "10.5.5.7", "c"))
	s.expectWorkloads(r, "add retail/vm 10.5.5.5 app=a", "update retail/vm 10.5.5.5 app=b",
		"update retail/vm 10.5.5.6 app=b", "delete retail/vm 10.5.5.6 app=b", "add retail/vm 10.5.5.7 app=c")
}

func workloadsNothing(s *suite) {
	r := s.workloadRecorder()
	s.setWorkload(machine("vm", "10.5.5.5", "a"))
	r.Take()
	s.setWorkload(machine("vm", "10.5.5.5", "a"))
	s.set(shop())
	s.expectWorkloads(r)
}

func workloadsReplay(s *suite) {
	s.setWorkload(machine("one", "10.5.5.5", "a"))
	s.setWorkload(machine("two", "10.5.5.6", "b"))
	r := s.workloadRecorder()
	s.removeWorkload("one")
	got := r.Take()
	slices.Sort(got[:min(2, len(got))])
	want := []string{"add retail/one 10.5.5.5 app=a", "add retail/two 10.5.5.6 app=b", "delete retail/one 10.5.5.5 app=a"}
	if !slices.Equal(got, want) {
		s.Broken("handlers received %q, want %q", got, want)
	}
}

func workloadsCallBack(s *suite) {
	once := sync.OnceFunc(func() {
		s.reg.Services()
		s.subject.SetWorkload(machine("two", "10.5.5.6", "b"))
	})
	r := &workloadRecorder{}
	s.reg.AppendWorkloadHandler(func(w *registry.WorkloadInstance, event registry.Event) {
		r.handle(w, event)
		once()
	})
	s.catchUp()
	s.Within("a change whose handler calls back", func() { s.setWorkload(machine("one", "10.5.5.5", "a")) })
	s.expectWorkloads(r, "add retail/one 10.5.5.5 app=a", "add retail/two 10.5.5.6 app=b")
}
