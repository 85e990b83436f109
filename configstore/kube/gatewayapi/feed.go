// SPDX-License-Identifier: Apache-2.0

package gatewayapi

import (
	"log/slog"
	"maps"
	"slices"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/aggregate"
	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/internal/commit"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/internal/configfeed"
)

// subscribe subscribes to the source, and to another store of ServiceEntries.
func (c *Cache) subscribe() {
	for _, r := range append(gatewayResources(), coreResources()...) {
		c.resources[r.gvk] = r
	}
	outputs := configstore.NewSchemasBuilder()
	for _, kind := range []configstore.GroupVersionKind{istio.DestinationRule, istio.Gateway, istio.VirtualService} {
		schema, _ := istio.Schemas().Find(kind)
		outputs.MustAdd(schema)
	}
	c.stage = aggregate.NewStage(c.source, outputs.Build(), c.changed, aggregate.CacheOptions{Logger: c.opts.Logger})
	c.merged = c.stage.Cache
	if entries := c.opts.ServiceEntries; entries != c.source && entries.Schemas().Has(istio.ServiceEntry) {
		c.awaited = append(c.awaited, entries)
		configfeed.Subscribe(entries, []configstore.GroupVersionKind{istio.ServiceEntry}, func(batch []configstore.Change) {
			c.stage.Derive(func() []configstore.Change { return c.apply(entryChanges(batch), nil, nil) })
		})
	}
}

// changed converts a batch of the source.
func (c *Cache) changed(batch []configstore.Change) []configstore.Change {
	var changes []Change
	if c.opts.ServiceEntries == c.source {
		changes = entryChanges(batch)
	}
	var keys []ObjectKey
	noted := make([]func(), 0, len(batch))
	for _, change := range batch {
		config := change.Curr
		r := c.resources[config.GroupVersionKind]
		if r == nil {
			continue
		}
		key := ObjectKey{Kind(r.gvk.Kind), Key{config.Namespace, config.Name}}
		if change.Event == configstore.EventDelete {
			changes = append(changes, r.del(config.Namespace, config.Name))
			noted = append(noted, func() {
				delete(c.objects, key)
				delete(c.unread, config.Key())
			})
			continue
		}
		object, found := r.decode(config)
		err := r.refusal(found)
		noted = append(noted, func() { c.noteUnread(config.Key(), err) })
		if len(found.wrong) > 0 { // from a source without validation
			continue
		}
		changes = append(changes, r.set(object))
		if r.hasStatus && r.gvk.Group != "" {
			noted = append(noted, func() { c.objects[key] = config })
			keys = append(keys, key)
		}
	}
	return c.apply(changes, keys, noted)
}

// entryChanges returns the changes of ServiceEntries in a batch.
func entryChanges(batch []configstore.Change) (out []Change) {
	for _, change := range batch {
		key := Key{change.Curr.Namespace, change.Curr.Name}
		spec, ok := change.Curr.Spec.(*networking.ServiceEntry)
		switch {
		case change.Curr.GroupVersionKind.Kind != istio.ServiceEntry.Kind:
		case ok && change.Event != configstore.EventDelete:
			out = append(out, Set(&ServiceEntry{Key: key, Spec: spec}))
		default:
			out = append(out, Delete[*ServiceEntry](key.Namespace, key.Name))
		}
	}
	return out
}

// noteUnread records the reason why an object is not converted as written; nil clears it.
func (c *Cache) noteUnread(key configstore.ConfigKey, err error) {
	if err == nil {
		delete(c.unread, key)
		return
	}
	c.unread[key] = err
	c.opts.Logger.Warn("object is not converted as it is", slog.String("object", key.Object()), slog.Any("error", err))
}

// entriesChanged applies a batch of ServiceEntries.
func (c *Cache) entriesChanged(batch []configstore.Change) {
	changes := make([]Change, 0, len(batch))
	for _, change := range batch {
		key := Key{change.Curr.Namespace, change.Curr.Name}
		spec, ok := change.Curr.Spec.(*networking.ServiceEntry)
		if change.Event == configstore.EventDelete || !ok {
			changes = append(changes, Delete[*ServiceEntry](key.Namespace, key.Name))
			continue
		}
		changes = append(changes, Set(&ServiceEntry{Key: key, Spec: spec}))
	}
	c.apply(changes, nil, nil)
}

// Apply converts changes of objects that are not in the source, as one batch.
func (c *Cache) Apply(changes ...Change) {
	c.stage.Derive(func() []configstore.Change { return c.apply(changes, nil, nil) })
	c.begin()
}

// apply converts changes and returns the changes of the configs. keys are the objects whose present
// status may have changed; the functions of noted record their new state.
func (c *Cache) apply(changes []Change, keys []ObjectKey, noted []func()) []configstore.Change {
	if len(changes)+len(noted) == 0 {
		return nil
	}
	update, look := c.convert(changes, noted)
	if keys = slices.Concat(update.Statuses, keys); look != nil && len(keys) > 0 {
		look(keys)
	}
	return dated(update.Changes)
}

// dated gives configs a creation time. As in Istio, those without one come before all others.
func dated(changes []configstore.Change) []configstore.Change {
	for i := range changes {
		if changes[i].Curr.CreationTimestamp.IsZero() {
			config := commit.Dated(*changes[i].Curr)
			changes[i].Curr = &config
		}
	}
	return changes
}

func (c *Cache) convert(changes []Change, noted []func()) (update Update, look func([]ObjectKey)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	update = c.converter.Apply(changes...)
	for _, note := range noted {
		note()
	}
	if c.ready {
		c.host(update.gateways)
	}
	return update, c.look
}

// begin publishes everything, once the source and the inputs have synced.
func (c *Cache) begin() {
	if c.isReady() || slices.ContainsFunc(c.awaited, func(s configstore.Syncer) bool { return !s.HasSynced() }) {
		return
	}
	c.stage.Begin(func() []configstore.Change {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.ready = true
		c.host(slices.Collect(maps.Keys(c.converter.gatewayStates)))
		return dated(c.converter.Snapshot().configs.Adds())
	})
}

// host passes the requirements of Gateways to the Infrastructure.
func (c *Cache) host(gateways []Key) {
	if c.hosting == nil {
		return
	}
	for _, key := range gateways {
		c.hosting.want(key, c.converter.desired(key))
	}
}
