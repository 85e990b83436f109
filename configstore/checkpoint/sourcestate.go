// SPDX-License-Identifier: Apache-2.0

package checkpoint

import "github.com/pilotkit/pilotkit/configstore"

var _ configstore.SourceStater = (*Cache)(nil)

// SourceState implements configstore.SourceStater, by Status. It is stale until the wrapped cache
// has synced; as long as it is, Content is when the file was written, and unknown afterwards, for
// then what is shown is that cache's. A file that was refused is an error until something is shown in
// its place, then a warning. Objects that no store takes, of the file or of the wrapped cache, are errors.
func (c *Cache) SourceState() configstore.SourceState {
	synced, status := c.HasSynced(), c.Status()
	s := configstore.SourceState{Synced: synced, Freshness: configstore.FreshnessOf(status.Stale), Err: status.Err}
	if status.Stale {
		s.Content = status.Written
	}
	if status.Refused != nil {
		s.Problems = append(s.Problems, configstore.SourceProblem{Text: status.Refused.Error(), Warning: synced})
	}
	for _, r := range c.shown.Refused() {
		s.Problems = append(s.Problems, configstore.SourceProblem{Object: r.Object, Text: r.Err.Error()})
	}
	return s
}
