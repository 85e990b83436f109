// SPDX-License-Identifier: Apache-2.0

package bridge

import "github.com/pilotkit/pilotkit/configstore"

var _ configstore.SourceStater = (*Bridge)(nil)

// SourceState implements configstore.SourceStater by Status. Content is the time of the last
// accepted list. The problems are the defects of its records.
func (b *Bridge) SourceState() configstore.SourceState {
	status := b.Status()
	s := configstore.SourceState{
		Synced: b.HasSynced(), StaleSince: status.StaleSince, Content: status.Listed, Err: status.Err,
	}
	if status.Stale() || !status.Listed.IsZero() {
		s.Freshness = configstore.FreshnessOf(status.Stale())
	}
	for _, d := range status.Defects {
		s.Problems = append(s.Problems, configstore.SourceProblem{Text: d.Error()})
	}
	return s
}
