// SPDX-License-Identifier: Apache-2.0

package file

import (
	"errors"
	"time"

	"github.com/pilotkit/pilotkit/configstore"
)

var _ configstore.SourceStater = (*Source)(nil)

// look has the results of the scans of the directory.
type look struct {
	// read is when it was read last, staleSince since when it cannot be.
	read, staleSince time.Time
	// err is why it cannot be read.
	err error
	// watched: changes are found without a call of Reload.
	watched bool
}

// SourceState implements configstore.SourceStater, by the Report. The source is stale while the
// directory cannot be read, and fresh while Run runs and can read it: a change is then visible
// after Options.Debounce or, without notifications, Options.Rescan. Without Run the freshness is
// unknown. Content is the time of the last successful read of the directory, or of its changes.
// Unreadable and rejected parts are among the problems, and keep their last good state.
func (s *Source) SourceState() configstore.SourceState {
	s.mu.Lock()
	last, report := s.last, s.report
	s.mu.Unlock()
	state := configstore.SourceState{Synced: s.HasSynced(), StaleSince: last.staleSince, Content: last.read, Err: last.err}
	switch {
	case last.err != nil:
		state.Freshness = configstore.Stale
	case last.watched:
		state.Freshness = configstore.Fresh
	}
	for _, e := range report.Errors {
		if e.File != s.dir || !errors.Is(last.err, e.Err) { // which is Err
			state.Problems = append(state.Problems, configstore.SourceProblem{Object: e.Object, Text: e.Error()})
		}
	}
	for _, w := range report.Warnings {
		state.Problems = append(state.Problems, configstore.SourceProblem{Object: w.Object, Text: w.Error(), Warning: true})
	}
	return state
}

// looked returns the state after one more scan.
func (s *Source) looked(before look, now time.Time) look {
	after := look{read: now, watched: s.watcher != nil && (s.opts.Rescan > 0 || len(s.watcher.failures()) == 0)}
	if s.rootFailure != nil {
		after.read, after.err, after.staleSince = before.read, s.rootFailure, before.staleSince
		if after.staleSince.IsZero() {
			after.staleSince = now
		}
	}
	return after
}
