// SPDX-License-Identifier: Apache-2.0

package etcd

import "github.com/pilotkit/pilotkit/configstore"

var _ configstore.SourceStater = (*Cache)(nil)

// SourceState implements configstore.SourceStater, by Status and Errors. While the cache is stale,
// StaleSince and Content are both the time of etcd's last response, because the published state is
// the one of that time.
func (c *Cache) SourceState() configstore.SourceState {
	status := c.Status()
	s := configstore.SourceState{
		Synced: c.HasSynced(), Freshness: configstore.FreshnessOf(status.Stale), StaleSince: status.Since, Content: status.Since, Err: status.Err,
	}
	for _, e := range c.Errors() {
		s.Problems = append(s.Problems, configstore.SourceProblem{Object: e.Object, Text: e.Error()})
	}
	return s
}
