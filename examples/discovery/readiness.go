// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net/http"
	"strings"

	"go.uber.org/atomic"

	"github.com/pilotkit/pilotkit/configstore"
)

// phase is the current phase of the program.
type phase string

const (
	reading  phase = "it waits for its sources"
	pushing  phase = "it makes what proxies are sent"
	serving  phase = "it serves"
	stopping phase = "it stops"
)

// readiness tells load balancers whether to send clients here, and operators the reason if not.
type readiness struct {
	phase   atomic.Pointer[phase]
	sources *sources
}

func newReadiness(s *sources) *readiness {
	r := &readiness{sources: s}
	r.enter(reading)
	return r
}

func (r *readiness) enter(p phase) { r.phase.Store(&p) }

// ServeHTTP responds with 200 while the program serves, and otherwise with 503 and the reason.
func (r *readiness) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	switch now := *r.phase.Load(); now {
	case serving:
	case reading:
		lines := append([]string{"not ready: " + string(now)}, r.missing()...)
		http.Error(w, strings.Join(lines, "\n"), http.StatusServiceUnavailable)
	default:
		http.Error(w, "not ready: "+string(now), http.StatusServiceUnavailable)
	}
}

// missing lists the sources that have not synced, with the reason if it is known.
func (r *readiness) missing() (out []string) {
	for _, source := range r.sources.watched {
		if text := missingOf(source); text != "" {
			out = append(out, text)
		}
	}
	return out
}

func missingOf(source configstore.Source) string {
	s := source.State()
	if s.Synced {
		return ""
	}
	reasons := []string{}
	if s.Err != nil {
		reasons = append(reasons, s.Err.Error())
	}
	for _, p := range s.Problems[:min(len(s.Problems), 3)] {
		reasons = append(reasons, p.Text)
	}
	if len(reasons) == 0 {
		reasons = append(reasons, "no error is known")
	}
	return source.Name + " has not been read: " + strings.Join(reasons, "; ")
}
