// SPDX-License-Identifier: Apache-2.0

package kube

import "github.com/pilotkit/pilotkit/configstore"

var _ configstore.SourceStater = (*Controller)(nil)

// SourceState implements configstore.SourceStater by Errors. The state is stale while there are
// any, and otherwise fresh, once the registry has synced.
func (c *Controller) SourceState() configstore.SourceState {
	s, errs := configstore.SourceState{Synced: c.HasSynced()}, c.Errors()
	if len(errs) > 0 || s.Synced {
		s.Freshness = configstore.FreshnessOf(len(errs) > 0)
	}
	for _, err := range errs {
		s.Problems = append(s.Problems, configstore.SourceProblem{Text: err.Error()})
	}
	return s
}
