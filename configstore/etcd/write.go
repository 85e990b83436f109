// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"errors"
	"fmt"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/internal/guard"
)

// Create implements ConfigStore. The time of creation, if none is given, is that of this
// machine.
func (c *Cache) Create(config configstore.Config) (revision string, err error) {
	return c.write(nil, configstore.Mutation{Op: configstore.OpCreate, Config: config})
}

// Update implements ConfigStore. An object that was written with a lease keeps it.
func (c *Cache) Update(config configstore.Config) (revision string, err error) {
	return c.write(nil, configstore.Mutation{Op: configstore.OpUpdate, Config: config})
}

// UpdateStatus implements ConfigStore. An object that was written with a lease keeps it.
func (c *Cache) UpdateStatus(config configstore.Config) (revision string, err error) {
	return c.write(nil, configstore.Mutation{Op: configstore.OpUpdateStatus, Config: config})
}

// Delete implements ConfigStore.
func (c *Cache) Delete(kind configstore.GroupVersionKind, name, namespace string, resourceVersion *string) error {
	return c.remove(nil, kind, name, namespace, resourceVersion)
}

// Apply implements configstore.BatchWriter: a batch is one transaction. It is ErrTooLarge if
// it concerns more than Options.MaxTxnOps objects; nothing is written then. Of several
// mutations of one object only what they amount to is written, and is an event.
func (c *Cache) Apply(mutations ...configstore.Mutation) (revision uint64, err error) {
	return c.applyAll(nil, mutations)
}

func (c *Cache) remove(l *Lease, kind configstore.GroupVersionKind, name, namespace string, resourceVersion *string) error {
	m := configstore.Mutation{Op: configstore.OpDelete}
	m.Config.GroupVersionKind, m.Config.Name, m.Config.Namespace = kind, name, namespace
	given := resourceVersion != nil
	if given {
		m.Config.ResourceVersion = *resourceVersion
	}
	w, err := c.newWrite(l, m)
	if err != nil {
		return err
	}
	w.mutations[0].given = given // also if it is empty
	_, err = w.do()
	return err
}

// write commits one mutation and returns the object's revision.
func (c *Cache) write(l *Lease, m configstore.Mutation) (revision string, err error) {
	w, err := c.newWrite(l, m)
	if err != nil {
		return "", err
	}
	mod, err := w.do()
	if mod == 0 {
		return "", err
	}
	return formatRevision(mod), err
}

func (c *Cache) applyAll(l *Lease, mutations []configstore.Mutation) (revision uint64, err error) {
	if len(mutations) > 0 {
		w, err := c.newWrite(l, mutations...)
		if err == nil {
			_, err = w.do()
		}
		if err != nil {
			return c.Revision(), err
		}
	}
	return c.Revision(), nil
}

// write is a batch on its way.
type write struct {
	cache *Cache
	// lease is nil for what stays.
	lease     *Lease
	mutations []mutation
	warnings  [][]configstore.Violation
	// keys are those of the mutations, each once.
	keys []string
}

// newWrite checks everything that can be checked without etcd.
func (c *Cache) newWrite(l *Lease, mutations ...configstore.Mutation) (*write, error) {
	w := &write{cache: c, lease: l, mutations: make([]mutation, len(mutations))}
	seen := make(map[string]bool, len(mutations))
	for i := range mutations {
		m, err := w.prepare(&mutations[i])
		if err != nil {
			return nil, m.fail(err)
		}
		w.mutations[i] = m
		if !seen[m.key] {
			seen[m.key] = true
			w.keys = append(w.keys, m.key)
		}
	}
	if n := len(w.keys); n > c.opts.MaxTxnOps {
		return nil, fmt.Errorf("apply: %w: it concerns %d objects, Options.MaxTxnOps is %d (the servers' --max-txn-ops has to allow more)",
			ErrTooLarge, n, c.opts.MaxTxnOps)
	}
	return w, nil
}

func (w *write) prepare(from *configstore.Mutation) (m mutation, err error) {
	c := w.cache
	m = mutation{op: from.Op, config: from.Config, given: from.Config.ResourceVersion != ""}
	kind := m.config.GroupVersionKind
	if kind == (configstore.GroupVersionKind{}) {
		kind, _ = c.Schemas().KindOf(m.config.Spec)
	}
	schema, known := c.Schemas().Find(kind)
	if !known {
		return m, unknownKind(&m.config)
	}
	m.schema = &schema
	m.config.GroupVersionKind = schema.GroupVersionKind
	if m.config.Domain == "" {
		m.config.Domain = c.opts.Domain
	}
	m.key = c.keys.of(m.config.Key())
	var warnings []configstore.Violation
	switch m.op {
	case configstore.OpCreate, configstore.OpUpdate, configstore.OpUpsert:
		warnings, err = c.codec.check(m.config, from.Checked)
	case configstore.OpUpdateStatus:
		config, shape := m.config, schema
		config.Spec, shape.Validate = schema.Spec, nil // only the status counts
		_, err = shape.Check(config)
	case configstore.OpDelete:
	default:
		err = &configstore.ValidationError{Key: m.config.Key(), Violations: []configstore.Violation{{Message: "the operation is unknown"}}}
	}
	w.warnings = append(w.warnings, warnings)
	return m, err
}

// unknownKind says why there is no kind for an object.
func unknownKind(config *configstore.Config) error {
	if config.GroupVersionKind == (configstore.GroupVersionKind{}) {
		return fmt.Errorf("%w: none is given, and not exactly one has specs of type %T", configstore.ErrUnknownKind, config.Spec)
	}
	return fmt.Errorf("%w %s", configstore.ErrUnknownKind, config.GroupVersionKind)
}

// do commits the batch, and returns when this cache shows it, with the revision of the last
// object.
func (w *write) do() (mod int64, err error) {
	c := w.cache
	ctx, cancel := c.timeout()
	defer cancel()
	var shows int64
	done := false
	err = c.whileNotRunning(ctx, func() error {
		// The watch begins before the transaction: it would take a server a while to tell it
		// what is past.
		s, err := c.attach(ctx)
		for errors.Is(err, errCompacted) {
			s, err = c.attach(ctx)
		}
		if err != nil {
			c.lost(err)
			return w.fail(c.requestError(err))
		}
		defer s.close()
		done = true
		if mod, shows, err = w.commit(ctx); err != nil {
			return err
		}
		// What goes wrong here await tries again.
		_ = c.pump(ctx, s, catchUpInterval, c.opts.Timeout, func(int64) bool { return c.shownRevision() >= shows })
		return nil
	})
	if err == nil && !done {
		mod, shows, err = w.commit(ctx)
	}
	if err != nil {
		return 0, err
	}
	w.warn()
	if err := c.await(ctx, shows); err != nil {
		return mod, w.fail(fmt.Errorf("%w: revision %d: %w", ErrNotShown, shows, err))
	}
	return mod, nil
}

// fail wraps an error with the verb and the object, or with what a batch is.
func (w *write) fail(err error) error {
	if len(w.mutations) == 1 {
		return w.mutations[0].fail(err)
	}
	return fmt.Errorf("apply %d mutations: %w", len(w.mutations), err)
}

// commit executes the batch. It returns the revision of the last object, and the one that
// shows the batch.
func (w *write) commit(ctx context.Context) (mod, shows int64, err error) {
	lookup := w.cache.shownAs
	fresh := w.lease != nil // Only etcd knows which leases objects have.
	if fresh {
		if lookup, err = w.read(ctx); err != nil {
			return 0, 0, err
		}
	}
	for attempts := 0; ; attempts++ {
		p, err := w.cache.newPlan(w.mutations, lookup)
		switch {
		case err != nil && fresh:
			return 0, 0, err
		case err != nil:
			// What this cache shows may be outdated: only etcd can say no.
			lookup, err = w.read(ctx)
		default:
			var committed bool
			mod, shows, lookup, committed, err = w.try(ctx, p)
			if committed {
				return mod, shows, nil
			}
		}
		if err != nil {
			if attempts > 1 {
				err = fmt.Errorf("%w, after %d attempts that others were faster than", err, attempts)
			}
			return 0, 0, err
		}
		fresh = true
	}
}

// read asks etcd for everything that the batch concerns.
func (w *write) read(ctx context.Context) (lookup func(*mutation) stored, err error) {
	gets := make([]clientv3.Op, len(w.keys))
	for i, key := range w.keys {
		gets[i] = clientv3.OpGet(key)
	}
	answer, err := w.cache.kv.Txn(ctx).Then(gets...).Commit()
	if err != nil {
		return nil, w.fail(w.cache.requestError(err))
	}
	return w.lookup(answer), nil
}

// lookup returns what is stored by the answers to gets.
func (w *write) lookup(answer *clientv3.TxnResponse) func(*mutation) stored {
	found := make(map[string]*mvccpb.KeyValue, len(w.keys))
	for _, r := range answer.Responses {
		for _, kv := range r.GetResponseRange().GetKvs() {
			found[string(kv.GetKey())] = kv
		}
	}
	return func(m *mutation) stored {
		if kv := found[m.key]; kv != nil {
			return w.cache.storedAs(kv)
		}
		return stored{}
	}
}

// try commits a plan, if etcd still has what it was made upon; otherwise it returns what etcd
// has.
func (w *write) try(ctx context.Context, p *plan) (mod, shows int64, now func(*mutation) stored, committed bool, err error) {
	var compares []clientv3.Cmp
	var changes, gets []clientv3.Op
	for _, t := range p.order {
		compares = append(compares, clientv3.Compare(clientv3.ModRevision(t.key), "=", t.was.mod))
		gets = append(gets, clientv3.OpGet(t.key))
		op, changes1, err := w.change(t)
		if err != nil {
			return 0, 0, nil, false, w.fail(err)
		}
		if changes1 {
			changes = append(changes, op)
		}
		shows = max(shows, t.was.mod)
	}
	answer, err := w.cache.kv.Txn(ctx).If(compares...).Then(changes...).Else(gets...).Commit()
	if err != nil {
		return 0, 0, nil, false, w.fail(w.cache.requestError(err))
	}
	if !answer.Succeeded {
		return 0, 0, w.lookup(answer), false, nil
	}
	if len(changes) > 0 {
		shows = answer.Header.GetRevision()
	}
	mod = shows
	if last := p.targets[w.mutations[len(w.mutations)-1].key]; !last.changed {
		mod = last.was.mod
	}
	return mod, shows, nil, true, nil
}

// change returns what a transaction does to a key, if anything.
func (w *write) change(t *target) (op clientv3.Op, changes bool, err error) {
	switch {
	case !t.exists && t.was.mod == 0:
		return op, false, nil // It came and went.
	case !t.exists:
		return clientv3.OpDelete(t.key), true, nil
	case !t.changed && (w.lease == nil || t.was.lease == int64(w.lease.id)):
		return op, false, nil
	case t.now == nil:
		return op, false, nil // Nothing is written over what cannot be decoded.
	}
	value, err := w.cache.codec.encode(*t.now)
	if err != nil {
		return op, false, err
	}
	t.changed = true
	switch {
	case w.lease != nil:
		return clientv3.OpPut(t.key, value, clientv3.WithLease(w.lease.id)), true, nil
	case t.was.mod != 0 && !t.again:
		return clientv3.OpPut(t.key, value, clientv3.WithIgnoreLease()), true, nil
	default:
		return clientv3.OpPut(t.key, value), true, nil
	}
}

// warn hands the validator's warnings to the program.
func (w *write) warn() {
	handler := w.cache.opts.OnWarning
	for i, warnings := range w.warnings {
		if len(warnings) > 0 && handler != nil {
			// The write is done, and the program's function no part of it.
			_ = guard.Call(func() { handler(w.mutations[i].config.Key(), warnings) })
		}
	}
}
