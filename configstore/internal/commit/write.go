// SPDX-License-Identifier: Apache-2.0

package commit

import (
	"errors"
	"fmt"
	"time"

	"github.com/pilotkit/pilotkit/configstore"
)

// ErrNotOwned is the outcome of a write to an object that another writer has put into the store.
var ErrNotOwned = errors.New("object in the store belongs to another writer")

// Owned is an object that a source has put into the store. The zero value stands for no object.
type Owned struct {
	// Config is the state that was written last.
	Config *configstore.Config
	// Created is when the object was created, as the store says, which may have times of its own. It
	// distinguishes the object from another one of the same key that another writer created after
	// deleting it. It is zero if the store did not show the object right after it was written.
	Created time.Time
}

// has reports whether a stored object is the one that the source has put there.
func (o Owned) has(stored *configstore.Config) bool {
	return o.Config != nil && (o.Created.IsZero() || o.Created.Equal(stored.CreationTimestamp))
}

// Write is one change that a store needs.
type Write struct {
	Key configstore.ConfigKey
	// Want is the state to write, or nil for a deletion. Checked may be the evidence that it is valid.
	Want    *configstore.Config
	Checked *configstore.Checked
	// Again means that the store has refused the object before.
	Again bool
	// Owned is the source's object in the store, before All and after it.
	Owned Owned
	// Err is the reason why the write was not made, or nil. It matches ErrNotOwned, or is the error of
	// the store.
	Err error

	// created is when the object was created if the write does not change that, else zero.
	created time.Time
}

// compare orders writes: deletions are last, the others, and the deletions, in the order of keys.
func (w *Write) compare(v *Write) int {
	switch {
	case w.Want == nil && v.Want != nil:
		return 1
	case w.Want != nil && v.Want == nil:
		return -1
	default:
		return w.Key.Compare(v.Key)
	}
}

// mutation returns the mutation that applies w to the currently stored object. The zero mutation
// means that there is nothing to do.
func (w *Write) mutation(store configstore.ConfigStore) (configstore.Mutation, error) {
	stored := store.Get(w.Key.Kind, w.Key.Name, w.Key.Namespace)
	w.created = time.Time{}
	switch {
	case w.Want == nil && (stored == nil || !w.Owned.has(stored)):
		// Another writer has deleted it, and perhaps created another one.
		return configstore.Mutation{}, nil
	case w.Want == nil:
		return configstore.Mutation{Op: configstore.OpDelete, Config: *stored}, nil
	case stored == nil:
		return configstore.Mutation{Op: configstore.OpCreate, Config: *w.Want, Checked: w.Checked}, nil
	case !w.Owned.has(stored):
		return configstore.Mutation{}, fmt.Errorf("write %s: %w", w.Key.Object(), ErrNotOwned)
	}
	config, had := *w.Want, w.Owned.Config.Status
	config.ResourceVersion = stored.ResourceVersion
	if config.CreationTimestamp.Equal(stored.CreationTimestamp) {
		w.created = stored.CreationTimestamp
	}
	if config.Status == nil && (had == nil || !configstore.EqualMessage(had, stored.Status)) {
		// A status that the source does not speak of belongs to the writer that set it.
		config.Status = stored.Status
	}
	return configstore.Mutation{Op: configstore.OpUpdate, Config: config, Checked: w.Checked}, nil
}

// settle sets Owned after the write.
func (w *Write) settle(store configstore.ConfigStore) {
	switch {
	case errors.Is(w.Err, ErrNotOwned), w.Err == nil && w.Want == nil:
		w.Owned = Owned{}
	case w.Err == nil:
		w.Owned = Owned{Config: w.Want, Created: w.created}
		if !w.created.IsZero() {
			return
		}
		if stored := store.Get(w.Key.Kind, w.Key.Name, w.Key.Namespace); stored != nil {
			w.Owned.Created = stored.CreationTimestamp
		}
	}
}
