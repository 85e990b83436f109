// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"slices"
	"unicode/utf8"
	"weak"

	"github.com/cespare/xxhash/v2"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/resource"
)

// initialVersions is what a delta client says that it has when it comes back: the names and
// versions of initial_resource_versions. Nearly always that is just what there is,
// or what many others come back with after the server was away. So initialVersions are
// compared as a whole, by their sum, which snapshots have too; they are decoded
// only if no snapshot is known that has them.
type initialVersions struct {
	initialVersionsKey
	fields []byte // initial_resource_versions, encoded
}

// initialVersionsKey identifies initialVersions, and the snapshot that has them.
type initialVersionsKey struct {
	typeURL string
	sum     uint64
	count   int
}

// add adds fields of initial_resource_versions, which it copies.
func (c *initialVersions) add(fields []byte) error {
	c.fields = append(c.fields, fields...)
	return eachInitialVersion(fields, func(name, version []byte) {
		hash := resource.ParseVersion(version)
		if hash == 0 { // not ours: nothing that we have is equal to it
			hash = ^xxhash.Sum64(version)
		}
		c.sum += resource.Weight(xxhash.Sum64(name), hash)
		c.count++
	})
}

// eachInitialVersion visits the entries of encoded fields.
func eachInitialVersion(fields []byte, visit func(name, version []byte)) error {
	for len(fields) > 0 {
		_, _, tag := protowire.ConsumeTag(fields)
		entry, n := protowire.ConsumeBytes(fields[max(0, tag):])
		if tag < 0 || n < 0 {
			return errRequest
		}
		fields = fields[tag+n:]
		var key, value []byte
		err := eachText(entry, func(number protowire.Number, text []byte) {
			switch int(number) {
			case 1:
				key = text
			case 2:
				value = text
			}
		})
		if err != nil || !utf8.Valid(key) {
			return errRequest
		}
		visit(key, value)
	}
	return nil
}

// snapshot decodes them.
func (c *initialVersions) snapshot() *resource.Snapshot {
	made := make([]resource.State, 0, c.count)
	_ = eachInitialVersion(c.fields, func(name, version []byte) { // it was decoded once already
		made = append(made, resource.State{TypeURL: c.typeURL, Name: string(name), Hash: resource.ParseVersion(version)})
	})
	list := make([]*resource.State, len(made))
	for i := range made {
		r := &made[i]
		if r.Hash == 0 {
			r.Marker = resource.Unknown
		}
		r.SetMade()
		list[i] = r
	}
	slices.SortStableFunc(list, resource.CompareNames)
	return resource.NewSnapshot(slices.CompactFunc(list, func(a, b *resource.State) bool { return a.Name == b.Name }))
}

// is reports whether a snapshot has just these versions.
func (c initialVersionsKey) is(s *resource.Snapshot) bool {
	return s != nil && s.Sum == c.sum && s.List.Len() == c.count
}

// maxRecalled bounds how many different ones are remembered.
const maxRecalled = 16

// recalled is a snapshot that was decoded from them. It lasts as long as a client
// has it, so that those who come back at once share it, and what they are sent.
type recalled struct {
	initialVersionsKey
	snapshot weak.Pointer[resource.Snapshot]
}

// recall returns the snapshot that a first request of a delta client resumes. It
// takes the lock, and decodes without it.
func (c *cache) recall(conn *connection, r *request) *resource.Snapshot {
	if found := c.recognize(conn, r); found != nil {
		return found
	}
	made := r.initialVersions.snapshot()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.recalled = slices.DeleteFunc(c.recalled, func(old recalled) bool { return old.snapshot.Value() == nil })
	if len(c.recalled) == maxRecalled {
		c.recalled = slices.Delete(c.recalled, 0, 1)
	}
	c.recalled = append(c.recalled, recalled{r.initialVersions.initialVersionsKey, weak.Make(made)})
	return made
}

// recognize returns a snapshot that is equal to what a request resumes, or nil: that of
// the selection which the client will have, most likely. It takes the lock.
func (c *cache) recognize(conn *connection, r *request) *resource.Snapshot {
	key := selectionKey{typeURL: r.typeURL, wildcard: r.subscribe.count == 0 || r.subscribe.wildcard}
	for name := range eachField(r.subscribe.fields) {
		if string(name) == wildcardName {
			continue
		}
		key.sum += xxhash.Sum64(name)
		key.count++
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	key.view = conn.view
	for _, s := range c.selections[key] {
		if r.initialVersions.is(s.snapshot) {
			return s.snapshot
		}
	}
	for _, old := range c.recalled {
		if old.initialVersionsKey == r.initialVersions.initialVersionsKey {
			return old.snapshot.Value()
		}
	}
	return nil
}
