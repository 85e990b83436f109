// SPDX-License-Identifier: Apache-2.0

package file

import (
	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/internal/commit"
)

// apply brings the objects of the keys up to date in the store.
func (s *Source) apply(dirty map[configstore.ConfigKey]struct{}) {
	var writes []*commit.Write
	for key := range dirty {
		if w := s.difference(key); w != nil {
			writes = append(writes, w)
		}
	}
	commit.All(s.store, writes)
	for _, w := range writes {
		s.conclude(w)
	}
}

// difference returns the write that brings an object of the store up to date, or nil.
func (s *Source) difference(key configstore.ConfigKey) *commit.Write {
	owned, mine := s.owned[key]
	effective := s.index.effective(key)
	_, again := s.retry[key]
	delete(s.retry, key)
	switch {
	case effective == nil && mine && len(s.index.definitions[key]) == 0:
		return &commit.Write{Key: key, Owned: owned, Again: again}
	case effective == nil, mine && owned.Config == effective.config:
		// The object is up to date, or no document defines it and it belongs to another writer,
		// or the documents that define it cannot be read and the last good state stays.
	case mine && commit.Equal(s.schemaOf(key), owned.Config, effective.config):
		// The same object, so that it is recognised by its address.
		effective.config = owned.Config
	default:
		return &commit.Write{Key: key, Want: effective.config, Checked: effective.checked, Owned: owned, Again: again}
	}
	return nil
}

func (s *Source) schemaOf(key configstore.ConfigKey) *configstore.Schema {
	schema, _ := s.schemas.Find(key.Kind)
	return &schema
}

// conclude notes the outcome of a write.
func (s *Source) conclude(w *commit.Write) {
	if w.Owned.Config != nil {
		s.owned[w.Key] = w.Owned
	} else {
		delete(s.owned, w.Key)
	}
	switch {
	case w.Err == nil:
	case w.Want != nil:
		s.retry[w.Key] = s.index.effective(w.Key).error(w.Err)
	default:
		s.retry[w.Key] = &Error{File: s.dir, Object: w.Key, Err: w.Err}
	}
}
