// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"slices"
	"weak"

	"github.com/cespare/xxhash/v2"

	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/resource"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/wire"
)

// maxRecalled bounds how many different ones are remembered.
const maxRecalled = 16

// recalled is a snapshot that was decoded from them. It lasts as long as a client
// has it, so that those who come back at once share it, and what they are sent.
type recalled struct {
	wire.VersionsKey
	snapshot weak.Pointer[resource.Snapshot]
}

// recall returns the snapshot that a first request of a delta client resumes. It
// takes the lock, and decodes without it.
func (c *cache) recall(conn *connection, r *received) *resource.Snapshot {
	if found := c.recognize(conn, r); found != nil {
		return found
	}
	made := r.InitialVersions.Snapshot()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.recalled = slices.DeleteFunc(c.recalled, func(old recalled) bool { return old.snapshot.Value() == nil })
	if len(c.recalled) == maxRecalled {
		c.recalled = slices.Delete(c.recalled, 0, 1)
	}
	c.recalled = append(c.recalled, recalled{r.InitialVersions.VersionsKey, weak.Make(made)})
	return made
}

// recognize returns a snapshot that is equal to what a request resumes, or nil: that of
// the selection which the client will have, most likely. It takes the lock.
func (c *cache) recognize(conn *connection, r *received) *resource.Snapshot {
	key := selectionKey{typeURL: r.TypeURL, wildcard: r.Subscribe.Count == 0 || r.Subscribe.Wildcard}
	for name := range r.Subscribe.All() {
		if string(name) == wire.WildcardName {
			continue
		}
		key.sum += xxhash.Sum64(name)
		key.count++
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	key.view = conn.view
	for _, s := range c.selections[key] {
		if r.InitialVersions.Is(s.snapshot) {
			return s.snapshot
		}
	}
	for _, old := range c.recalled {
		if old.VersionsKey == r.InitialVersions.VersionsKey {
			return old.snapshot.Value()
		}
	}
	return nil
}
