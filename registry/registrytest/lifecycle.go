// SPDX-License-Identifier: Apache-2.0

package registrytest

import (
	"github.com/pilotkit/pilotkit/internal/test/contract"
	"github.com/pilotkit/pilotkit/registry"
)

const sourceController = "registry.Controller"

func lifecycleChecks() []check {
	return []check{
		{
			Name: "Identity", Source: "registry.Instance",
			Promise: "provider and cluster never change, and the provider has a name",
			Run:     identity,
		},
		{
			Name: "HasSynced", Source: sourceController,
			Promise: "HasSynced becomes and stays true",
			Run:     hasSynced,
		},
		{
			Name: "Run/Stop", Source: sourceController,
			Promise: "Run works until stop is closed, and then returns",
			Skip:    isRunning, Run: runStop,
		},
		{
			Name: "Run/Twice", Source: sourceController,
			Promise: "a second call of Run panics",
			Skip:    isRunning, Run: runTwice,
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
		s.Broken("the provider is empty")
	}
	s.set(shop())
	s.remove(shop())
	if s.reg.Provider() != provider || s.reg.Cluster() != cluster {
		s.Broken("%s/%s became %s/%s", provider, cluster, s.reg.Provider(), s.reg.Cluster())
	}
}

func hasSynced(s *suite) {
	var stop, done chan struct{}
	if !s.subject.Running {
		stop, done = s.run()
		defer func() {
			close(stop)
			s.Await(done, "the return of Run")
		}()
	}
	s.catchUp()
	s.Eventually("HasSynced", s.reg.HasSynced)
	s.set(shop())
	if !s.reg.HasSynced() {
		s.Broken("HasSynced became false")
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
	s.catchUp()
	s.Eventually("HasSynced", s.reg.HasSynced)
	called := make(chan struct{}, 1)
	s.reg.AppendServiceHandler(func(_, _ *registry.Service, _ registry.Event) {
		select {
		case called <- struct{}{}:
		default:
		}
	})
	s.set(shop())
	seen := make(chan struct{})
	go func() {
		defer close(seen)
		select {
		case <-called:
		case <-stop:
		}
	}()
	s.AwaitOpening(seen, func() { close(stop) }, "a handler call while Run works")
	// Give a Run that does not block the time to return.
	s.Idle()
	select {
	case <-done:
		s.Stop("Run returned before stop was closed")
	default:
	}
	close(stop)
	s.Await(done, "the return of Run")
}

func runTwice(s *suite) {
	stop, done := s.run()
	close(stop)
	s.Await(done, "the return of Run")
	stopped := make(chan struct{})
	close(stopped)
	if !contract.Panics(func() { s.reg.Run(stopped) }) {
		s.Broken("the second Run returned")
	}
}
