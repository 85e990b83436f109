// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"fmt"
	"strconv"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/internal/rules"
)

// mutation is one change in progress.
type mutation struct {
	op  configstore.Op
	key string
	// config has the canonical kind.
	config configstore.Config
	// given is set if the stored revision must equal the ResourceVersion of config.
	given  bool
	schema *configstore.Schema
}

// fail wraps an error with the verb and the object.
func (m *mutation) fail(err error) error { return rules.Error(m.op, m.config.Key(), err) }

// stored is the value of a key as far as a write knows it.
type stored struct {
	// mod is the mod revision, or 0 if the key does not exist.
	mod int64
	// config is nil if the key does not exist or cannot be decoded; in the latter case err is the
	// reason.
	config *configstore.Config
	err    error
	lease  int64
}

// target is the planned result of one key.
type target struct {
	key string
	was stored
	// now is the state after the mutations so far. It is nil if there is none, or if the stored
	// value cannot be decoded.
	now *configstore.Config
	// exists is set if the key has a value after the mutations so far.
	exists bool
	// changed is set if the value differs from the stored one, and again if the key was deleted in
	// between.
	changed, again bool
}

// plan contains the results of a batch for its keys, given the stored values.
type plan struct {
	cache   *Cache
	targets map[string]*target
	order   []*target
}

// newPlan plans the mutations, given the stored values that lookup returns.
func (c *Cache) newPlan(mutations []mutation, lookup func(m *mutation) stored) (*plan, error) {
	p := &plan{cache: c, targets: make(map[string]*target, len(mutations))}
	for i := range mutations {
		m := &mutations[i]
		t := p.targets[m.key]
		if t == nil {
			was := lookup(m)
			t = &target{key: m.key, was: was, now: was.config, exists: was.mod != 0}
			p.targets[m.key] = t
			p.order = append(p.order, t)
		}
		if err := t.apply(m); err != nil {
			return nil, m.fail(err)
		}
	}
	return p, nil
}

// apply applies a mutation to the target. It returns the errors of ConfigStore.
func (t *target) apply(m *mutation) error {
	op := rules.Decide(m.op, t.exists, m.given)
	if err := t.check(op, m); err != nil {
		return err
	}
	next := m.config
	switch {
	case op == configstore.OpDelete:
		t.now, t.exists, t.changed, t.again = nil, false, true, true
		return nil
	case op == configstore.OpUpdateStatus && t.now == nil:
		return fmt.Errorf("what is stored cannot be decoded: %w", t.was.err)
	case op == configstore.OpUpdateStatus:
		if configstore.EqualMessage(t.now.Status, next.Status) {
			return nil
		}
		status := next.Status
		next = *t.now
		next.Status = status
	case t.now == nil: // The object is new, or the stored value cannot be decoded.
		next.Generation = 1
		if next.CreationTimestamp.IsZero() {
			next.CreationTimestamp = time.Now().UTC().Round(0)
		}
	default:
		differs := rules.Compare(m.schema, t.now, &next)
		if !differs.Anything {
			return nil
		}
		next.Generation = t.now.Generation
		if differs.Spec {
			next.Generation++
		}
		if next.CreationTimestamp.IsZero() {
			next.CreationTimestamp = t.now.CreationTimestamp
		}
	}
	t.now, t.exists, t.changed = &next, true, true
	return nil
}

// check returns an error if a mutation is not possible.
func (t *target) check(op configstore.Op, m *mutation) error {
	if m.given && t.exists && t.changed && op != configstore.OpCreate {
		return fmt.Errorf("%w: %q is given, and the batch has changed the object", configstore.ErrConflict, m.config.ResourceVersion)
	}
	return rules.Check(op, t.exists, m.given, m.config.ResourceVersion, formatRevision(t.was.mod))
}

// shownAs returns the stored value according to this cache, which may be older than the one in
// etcd.
func (c *Cache) shownAs(m *mutation) stored {
	config := c.published.Get(m.config.GroupVersionKind, m.config.Name, m.config.Namespace)
	if config == nil {
		return stored{}
	}
	mod, _ := strconv.ParseInt(config.ResourceVersion, 10, 64) // formatted by this package
	return stored{mod: mod, config: config}
}

// storedAs returns the stored value of a key in a response of etcd.
func (c *Cache) storedAs(kv *mvccpb.KeyValue) stored {
	s := stored{mod: kv.GetModRevision(), lease: kv.GetLease()}
	config, _, err := c.codec.decode(kv)
	if err != nil {
		s.err = err
		return s
	}
	s.config = &config
	return s
}
