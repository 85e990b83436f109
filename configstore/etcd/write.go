// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"errors"
	"fmt"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/internal/rules"
	"github.com/pilotkit/pilotkit/internal/guard"
)

// Create implements ConfigStore. A missing creation time is set by this machine's clock.
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

// Apply implements configstore.BatchWriter: a batch is one transaction. It fails with ErrTooLarge,
// and writes nothing, if it changes more than Options.MaxTxnOps objects. Several mutations of one
// object are merged into one write and one event.
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
	w.mutations[0].given = given // even if it is empty
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

// write is a batch in progress.
type write struct {
	cache *Cache
	// lease is nil for objects without a lease.
	lease     *Lease
	mutations []mutation
	warnings  [][]configstore.Violation
	// keys are the distinct keys of the mutations.
	keys []string
}

// newWrite performs the checks that do not need etcd.
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
		return m, c.Schemas().UnknownKind(kind, m.config.Spec)
	}
	m.schema = &schema
	m.config.GroupVersionKind = schema.GroupVersionKind
	if m.config.Domain == "" {
		m.config.Domain = c.opts.Domain
	}
	m.key = c.keys.of(m.config.Key())
	if !rules.WritesSpec(m.op) {
		w.warnings = append(w.warnings, nil)
		return m, rules.Validate(m.op, &m.config, m.schema)
	}
	warnings, err := c.codec.check(m.config, from.Checked)
	w.warnings = append(w.warnings, warnings)
	return m, err
}

// do commits the batch, and returns the revision of the last object once this cache has the result.
func (w *write) do() (mod int64, err error) {
	c := w.cache
	ctx, cancel := c.timeout()
	defer cancel()
	var shows int64
	done := false
	err = c.whileNotRunning(ctx, func() error {
		// The watch begins before the transaction, because a server takes a while to send past
		// events.
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
		// After an error here, await retries.
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

// fail wraps an error with the verb and the object, or with the size of the batch.
func (w *write) fail(err error) error {
	if len(w.mutations) == 1 {
		return w.mutations[0].fail(err)
	}
	return fmt.Errorf("apply %d mutations: %w", len(w.mutations), err)
}

// commit writes the batch in one transaction. It returns the revision of the last object of the
// batch, and the revision that the cache must have reached to show the batch.
func (w *write) commit(ctx context.Context) (mod, shows int64, err error) {
	p, err := w.cache.newPlan(w.mutations, w.cache.shownAs)
	if err != nil || w.lease != nil {
		// The cached state may be outdated, and only etcd knows the leases of objects.
		if p, err = w.planFresh(ctx); err != nil {
			return 0, 0, err
		}
	}
	for attempts := 1; ; attempts++ {
		answer, err := w.try(ctx, p)
		switch {
		case err != nil && attempts > 2:
			return 0, 0, fmt.Errorf("%w, after %d attempts that lost to other writers", err, attempts-1)
		case err != nil:
			return 0, 0, err
		case answer.Succeeded:
			mod, shows = w.revisions(p, answer)
			return mod, shows, nil
		}
		if p, err = w.cache.newPlan(w.mutations, w.lookup(answer)); err != nil {
			return 0, 0, err
		}
	}
}

// planFresh plans the batch from the values in etcd.
func (w *write) planFresh(ctx context.Context) (*plan, error) {
	answer, err := w.cache.kv.Txn(ctx).Then(w.gets()...).Commit()
	if err != nil {
		return nil, w.fail(w.cache.requestError(err))
	}
	return w.cache.newPlan(w.mutations, w.lookup(answer))
}

// gets returns the operations that read all keys of the batch.
func (w *write) gets() []clientv3.Op {
	gets := make([]clientv3.Op, len(w.keys))
	for i, key := range w.keys {
		gets[i] = clientv3.OpGet(key)
	}
	return gets
}

// lookup returns the stored values in a response to gets.
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

// try commits a plan if etcd still has the values on which it is based; otherwise the response has the
// current values.
func (w *write) try(ctx context.Context, p *plan) (*clientv3.TxnResponse, error) {
	var compares []clientv3.Cmp
	var changes []clientv3.Op
	for _, t := range p.order {
		compares = append(compares, clientv3.Compare(clientv3.ModRevision(t.key), "=", t.was.mod))
		change, err := w.change(t)
		if err != nil {
			return nil, w.fail(err)
		}
		changes = append(changes, change...)
	}
	answer, err := w.cache.kv.Txn(ctx).If(compares...).Then(changes...).Else(w.gets()...).Commit()
	if err != nil {
		return nil, w.fail(w.cache.requestError(err))
	}
	return answer, nil
}

// revisions returns what commit returns of a plan that was committed.
func (w *write) revisions(p *plan, answer *clientv3.TxnResponse) (mod, shows int64) {
	for _, t := range p.order {
		shows = max(shows, t.was.mod)
	}
	if len(answer.Responses) > 0 { // One for each change.
		shows = answer.Header.GetRevision()
	}
	if last := p.targets[w.mutations[len(w.mutations)-1].key]; !last.changed {
		return last.was.mod, shows
	}
	return shows, shows
}

// change returns the operation of a transaction on a key, if any.
func (w *write) change(t *target) ([]clientv3.Op, error) {
	switch {
	case !t.exists && t.was.mod == 0:
		return nil, nil // created and deleted within the batch
	case !t.exists:
		return []clientv3.Op{clientv3.OpDelete(t.key)}, nil
	case !t.changed && (w.lease == nil || t.was.lease == int64(w.lease.id)):
		return nil, nil
	case t.now == nil:
		return nil, nil // A value that cannot be decoded is not overwritten.
	}
	value, err := w.cache.codec.encode(*t.now)
	if err != nil {
		return nil, err
	}
	t.changed = true
	var opts []clientv3.OpOption
	switch {
	case w.lease != nil:
		opts = append(opts, clientv3.WithLease(w.lease.id))
	case t.was.mod != 0 && !t.again:
		opts = append(opts, clientv3.WithIgnoreLease())
	}
	return []clientv3.Op{clientv3.OpPut(t.key, value, opts...)}, nil
}

// warn passes the validator's warnings to the host.
func (w *write) warn() {
	handler := w.cache.opts.OnWarning
	for i, warnings := range w.warnings {
		if len(warnings) > 0 && handler != nil {
			// The write has succeeded, regardless of the host's function.
			_ = guard.Call(func() { handler(w.mutations[i].config.Key(), warnings) })
		}
	}
}
