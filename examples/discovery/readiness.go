// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"net/http"
	"strings"

	"go.uber.org/atomic"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
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
	closed  func() []traffic.Ineffective
}

func newReadiness(s *sources, closed func() []traffic.Ineffective) *readiness {
	r := &readiness{sources: s, closed: closed}
	r.enter(reading)
	return r
}

func (r *readiness) enter(p phase) { r.phase.Store(&p) }

// ServeHTTP responds with 200 while the program serves, and otherwise with 503 and the reason. The
// text of 200 has the policies that are closed because they cannot be read.
func (r *readiness) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	switch now := *r.phase.Load(); now {
	case serving:
		for _, found := range r.closed() {
			fmt.Fprintln(w, found)
		}
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
