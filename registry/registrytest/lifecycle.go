// SPDX-License-Identifier: Apache-2.0

package registrytest

import (
	"time"

	"github.com/pilotkit/pilotkit/registry"
)

const sourceController = "registry.Controller"

func lifecycleChecks() []check {
	return []check{
		{
			name: "Identity", source: "registry.Instance",
			promise: "provider and cluster never change, and the provider has a name",
			run:     identity,
		},
		{
			name: "HasSynced", source: sourceController,
			promise: "HasSynced becomes and stays true",
			run:     hasSynced,
		},
		{
			name: "Run/Stop", source: sourceController,
			promise: "Run works until stop is closed, and then returns",
			skip:    isRunning, run: runStop,
		},
		{
			name: "Run/Twice", source: sourceController,
			promise: "a second call of Run panics",
			skip:    isRunning, run: runTwice,
		},
	}
}

func isRunning(s *suite) string {
	if s.subject.Running {
		return "the registry has been started by the factory"
	}
	return ""
}

func identity(s *suite) {
	provider, cluster := s.reg.Provider(), s.reg.Cluster()
	if provider == "" {
		s.broken("the provider is empty")
	}
	s.set(shop())
	s.remove(shop())
	if s.reg.Provider() != provider || s.reg.Cluster() != cluster {
		s.broken("%s/%s became %s/%s", provider, cluster, s.reg.Provider(), s.reg.Cluster())
	}
}

func hasSynced(s *suite) {
	var stop, done chan struct{}
	if !s.subject.Running {
		stop, done = s.run()
		defer func() {
			close(stop)
			s.await(done, "the return of Run")
		}()
	}
	s.settle()
	s.eventually("HasSynced", s.reg.HasSynced)
	s.set(shop())
	if !s.reg.HasSynced() {
		s.broken("HasSynced became false")
	}
}

// run starts the registry. done is closed when Run has returned.
func (s *suite) run() (stop, done chan struct{}) {
	stop, done = make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		s.reg.Run(stop)
	}()
	return stop, done
}

func runStop(s *suite) {
	stop, done := s.run()
	s.settle()
	s.eventually("HasSynced", s.reg.HasSynced)
	told := make(chan struct{}, 1)
	s.reg.AppendServiceHandler(func(_, _ *registry.Service, _ registry.Event) {
		select {
		case told <- struct{}{}:
		default:
		}
	})
	s.set(shop())
	heard := make(chan struct{})
	go func() {
		defer close(heard)
		select {
		case <-told:
		case <-stop:
		}
	}()
	s.awaitOpening(heard, func() { close(stop) }, "a handler call while Run works")
	// A Run that does not block has had the time to return.
	timer := time.NewTimer(min(s.subject.Timeout, 20*time.Millisecond))
	defer timer.Stop()
	select {
	case <-done:
		s.stop("Run returned before stop was closed")
	case <-timer.C:
	}
	close(stop)
	s.await(done, "the return of Run")
}

func runTwice(s *suite) {
	stop, done := s.run()
	close(stop)
	s.await(done, "the return of Run")
	defer func() {
		if recover() == nil {
			s.broken("the second Run returned")
		}
	}()
	stopped := make(chan struct{})
	close(stopped)
	s.reg.Run(stopped)
}
