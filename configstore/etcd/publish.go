// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"cmp"
	"log/slog"
	"slices"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/internal/commit"
)

// version is the cache's state of a key. A key that was created again is another object.
type version struct {
	create, mod int64
	object      configstore.ConfigKey
	// shown is set if a state of the object is published, and placeholder if that is a placeholder.
	shown, placeholder bool
}

// batch contains the changes of one transaction, or of one list.
type batch struct {
	cache     *Cache
	mutations []configstore.Mutation
	// errs contains the new errors by key, or nil for keys whose error has gone.
	errs map[string]*Error
}

func (c *Cache) newBatch() *batch { return &batch{cache: c, errs: map[string]*Error{}} }

// put applies the value of a key in etcd. If it is not a valid object, the last good state of the
// same object stays; the state of a deleted object of the same name is removed. An object without a
// last good state is published as a placeholder, if its kind has placeholders.
func (b *batch) put(kv *mvccpb.KeyValue) {
	c, key := b.cache, string(kv.GetKey())
	old := c.known[key]
	next := version{create: kv.GetCreateRevision(), mod: kv.GetModRevision(), shown: old.shown, placeholder: old.placeholder}
	var config configstore.Config
	var err error
	config, next.object, err = c.codec.decode(kv)
	if old.shown && old.create != next.create {
		b.drop(old.object)
		next.shown = false
	}
	b.errs[key] = nil
	usable := err == nil
	if err != nil {
		b.errs[key] = &Error{Key: key, Object: next.object, Revision: next.mod, Since: time.Now(), Err: err}
		if !next.shown || next.placeholder {
			config, usable = c.codec.placeholder(kv, config, next.object, err)
		}
	}
	if usable {
		b.mutations = append(b.mutations, configstore.Mutation{Op: configstore.OpUpsert, Config: config})
		next.shown, next.placeholder = true, err != nil
	}
	c.known[key] = next
}

// remove applies the deletion of a key in etcd.
func (b *batch) remove(key string) {
	c := b.cache
	if old, known := c.known[key]; known {
		if old.shown {
			b.drop(old.object)
		}
		delete(c.known, key)
		b.errs[key] = nil
	}
}

func (b *batch) drop(object configstore.ConfigKey) {
	b.mutations = append(b.mutations, commit.Deletion(object))
}

// publish publishes the batch, as the state of a revision.
func (b *batch) publish(revision int64) {
	c := b.cache
	for _, r := range commit.Show(c.published, b.mutations) { // Not expected, because decode has checked the objects.
		key := c.codec.keys.of(r.Object)
		b.errs[key] = &Error{Key: key, Object: r.Object, Revision: c.known[key].mod, Since: time.Now(), Err: r.Err}
	}
	c.noteErrors(b.errs)
	c.show(revision)
}

// noteErrors records the new errors of keys.
func (c *Cache) noteErrors(errs map[string]*Error) {
	var fresh []*Error
	c.mu.Lock()
	for key, e := range errs {
		before := c.errs[key]
		switch {
		case e == nil:
			delete(c.errs, key)
			continue
		case before != nil && before.Err.Error() == e.Err.Error():
			e.Since = before.Since
		default:
			fresh = append(fresh, e)
		}
		c.errs[key] = e
	}
	c.mu.Unlock()
	for _, e := range fresh {
		now := c.known[e.Key]
		commit.LogInvalid(c.opts.Logger.With(slog.String("key", e.Key), slog.Int64("revision", e.Revision), slog.Any("error", e.Err)),
			now.shown && !now.placeholder, now.placeholder)
	}
}

// publishEvents publishes the events of a watch, each transaction as one batch. It skips published
// transactions, because a watch that was opened again may repeat them.
func (c *Cache) publishEvents(events []*mvccpb.Event) {
	shown := c.shownRevision()
	for len(events) > 0 {
		revision := events[0].GetKv().GetModRevision()
		n := slices.IndexFunc(events, func(e *mvccpb.Event) bool { return e.GetKv().GetModRevision() != revision })
		if n < 0 {
			n = len(events)
		}
		if revision > shown {
			b := c.newBatch()
			for _, e := range events[:n] {
				if e.GetType() == mvccpb.Event_DELETE {
					b.remove(string(e.GetKv().GetKey()))
				} else {
					b.put(e.GetKv())
				}
			}
			b.publish(revision)
		}
		events = events[n:]
	}
}

// publishList publishes the objects that etcd has at a revision. The difference from the published
// state is one batch: deletions, then the others in the order of keys. other is set if the list
// belongs to another history than the published state, so that equal revisions are not comparable.
func (c *Cache) publishList(kvs []*mvccpb.KeyValue, revision int64, other bool) {
	b := c.newBatch()
	there := make(map[string]bool, len(kvs))
	for _, kv := range kvs {
		there[string(kv.GetKey())] = true
	}
	var gone []string
	for key := range c.known {
		if !there[key] {
			gone = append(gone, key)
		}
	}
	slices.SortFunc(gone, cmp.Compare[string])
	for _, key := range gone {
		b.remove(key)
	}
	for _, kv := range kvs {
		old, known := c.known[string(kv.GetKey())]
		if known && !other && old.mod == kv.GetModRevision() && old.create == kv.GetCreateRevision() {
			continue
		}
		b.put(kv)
	}
	b.publish(revision)
}
