// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/failure"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/services"
)

// moment is what a push reads: services, endpoints and configs as they were at once.
// It is immutable; everything that clients are sent is derived from it while the
// registries go on.
type moment struct {
	services  services.Reader
	endpoints *xdsupdate.EndpointSnapshot
	configs   ConfigReader
	own       resourcesByType
	// whole: all of it belongs together.
	whole bool
}

// prepareCapture is the Pusher's Prepare.
func (s *Server) prepareCapture() { s.services.Ahead() }

// capture is the Pusher's Capture.
func (s *Server) capture(req *xdsupdate.PushRequest) {
	m := &moment{endpoints: s.EndpointIndex().Snapshot(), configs: s.readConfigs(), own: s.own.capture()}
	full := req.Full || req.Everything() || !s.built
	if full || s.services.HasSnapshots() {
		m.services = s.services.Read()
	}
	// A push of endpoints waits for nothing: what providers have configs of comes with the
	// full one that they ask for.
	m.whole = !full || s.captureProviders()
	s.moment = m
}

// captureProviders has providers fix what they read, and reports whether that is of the
// same moment as all else.
func (s *Server) captureProviders() bool {
	whole := true
	for _, p := range s.providers {
		if c, ok := p.Provider.(Capturer); ok {
			s.cache.failures.Undone(p.part.Call(func() error {
				whole = c.Capture() && whole
				return nil
			}))
		}
	}
	return whole
}

// readConfigs reads the program's configs. If that panics those of the push before stay.
func (s *Server) readConfigs() (configs ConfigReader) {
	if s.configs == nil {
		return nil
	}
	if s.context != nil {
		configs = s.context.moment.configs
	}
	s.cache.failures.Undone(failure.Part{In: failure.InConfigs}.Call(func() error {
		configs = s.configs()
		return nil
	}))
	return configs
}
