// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"time"

	"github.com/pilotkit/pilotkit/configstore"
)

var _ configstore.SourceStater = (*Cache)(nil)

// SourceState implements configstore.SourceStater, by Errors and Warnings. The state is stale while
// some kind cannot be listed or watched, since the first such failure that lasts, or when Run has
// returned. It is fresh after everything was listed. The time of the last read is unknown, because
// objects arrive by watches.
func (c *Cache) SourceState() configstore.SourceState {
	s := configstore.SourceState{Synced: c.HasSynced()}
	since, listed := c.failingSince(), c.listed()
	switch {
	case !since.IsZero():
		s.Freshness, s.StaleSince = configstore.Stale, since
	case listed:
		s.Freshness = configstore.FreshnessOf(c.ended.Load())
	}
	for _, e := range c.Errors() {
		s.Problems = append(s.Problems, e.problem(false))
	}
	for _, w := range c.Warnings() {
		s.Problems = append(s.Problems, w.problem(true))
	}
	return s
}

// failingSince returns the time of the oldest failure to read a kind, or zero if all kinds can be
// read.
func (c *Cache) failingSince() (since time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	first := func(f failure) {
		if f.err != nil && (since.IsZero() || f.since.Before(since)) {
			since = f.since
		}
	}
	first(c.crdErr)
	for _, k := range c.kinds {
		for _, s := range k.scopes {
			first(s.err)
		}
	}
	return since
}

func (e *Error) problem(warning bool) configstore.SourceProblem {
	p := configstore.SourceProblem{Text: e.Error(), Warning: warning}
	if e.Object.Name != "" { // an error without an object concerns a kind
		p.Object = e.Object
	}
	return p
}
