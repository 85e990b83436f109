// SPDX-License-Identifier: Apache-2.0

package mcp

import "github.com/pilotkit/pilotkit/configstore"

var _ configstore.SourceStater = (*Source)(nil)

// SourceState implements configstore.SourceStater, by Status and Report. Content is when the
// last response was applied; before Run it is not known whether it is fresh.
func (s *Source) SourceState() configstore.SourceState {
	status := s.Status()
	state := configstore.SourceState{
		Synced: s.HasSynced(), StaleSince: status.StaleSince, Content: status.Applied, Err: status.Err,
	}
	if s.ran.Load() {
		state.Freshness = configstore.FreshnessOf(status.Stale())
	}
	for _, e := range s.Report().Errors {
		state.Problems = append(state.Problems, configstore.SourceProblem{Object: e.Object, Text: e.Error()})
	}
	return state
}
