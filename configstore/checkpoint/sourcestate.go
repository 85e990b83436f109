// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"maps"
	"slices"

	"github.com/pilotkit/pilotkit/configstore"
)

var _ configstore.SourceStater = (*Cache)(nil)

// SourceState implements configstore.SourceStater, by Status. The source is stale until the wrapped
// cache has synced. Until then Content is the time when the file was written; afterwards it is
// unknown, because the shown content is that of the wrapped cache. A rejected file is an error
// until other content is shown in its place, then a warning. Objects of the file or of the wrapped
// cache that the store rejects are errors.
func (c *Cache) SourceState() configstore.SourceState {
	synced, status := c.HasSynced(), c.Status()
	s := configstore.SourceState{Synced: synced, Freshness: configstore.FreshnessOf(status.Stale), Err: status.Err}
	if status.Stale {
		s.Content = status.Written
	}
	if status.Refused != nil {
		s.Problems = append(s.Problems, configstore.SourceProblem{Text: status.Refused.Error(), Warning: synced})
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, key := range slices.SortedFunc(maps.Keys(c.refused), configstore.ConfigKey.Compare) {
		s.Problems = append(s.Problems, configstore.SourceProblem{Object: key, Text: c.refused[key].Error()})
	}
	return s
}
