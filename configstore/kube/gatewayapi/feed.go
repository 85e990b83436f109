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
	c.stage = aggregate.NewStage(c.source, istio.Schemas(), c.changed, aggregate.CacheOptions{Logger: c.opts.Logger})
	c.merged = c.stage.Cache
	if entries := c.opts.ServiceEntries; entries != c.source && entries.Schemas().Has(istio.ServiceEntry) {
		c.awaited = append(c.awaited, entries)
		configfeed.Subscribe(entries, []configstore.GroupVersionKind{istio.ServiceEntry}, func(batch []configstore.Change) {
			c.Apply(entryChanges(batch)...)
		})
	}
}

// changed converts a batch of the source.
func (c *Cache) changed(batch []configstore.Change) []configstore.Change {
	c.mu.Lock()
	defer c.mu.Unlock()
	var changes []Change
	if c.opts.ServiceEntries == c.source {
		changes = entryChanges(batch)
	}
	var keys []ObjectKey
	for _, change := range batch {
		config := change.Curr
		r := c.resources[config.GroupVersionKind]
		if r == nil {
			continue
		}
		key := ObjectKey{Kind(r.gvk.Kind), Key{config.Namespace, config.Name}}
		if change.Event == configstore.EventDelete {
			changes = append(changes, r.del(config.Namespace, config.Name))
			delete(c.objects, key)
			delete(c.unread, config.Key())
			continue
		}
		object, found := r.decode(config)
		c.noteUnread(config.Key(), r.refusal(found))
		if len(found.wrong) > 0 { // from a source without validation
			continue
		}
		changes = append(changes, r.set(object))
		if r.hasStatus && r.gvk.Group != "" {
			c.objects[key] = config
			keys = append(keys, key)
		}
	}
	return c.applyLocked(changes, keys)
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

// Apply converts changes of objects that are not in the source, as one batch.
func (c *Cache) Apply(changes ...Change) {
	c.stage.Derive(func() []configstore.Change {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.applyLocked(changes, nil)
	})
	c.begin()
}

// applyLocked converts changes and returns the changes of the configs. keys are the objects whose
// present status may have changed.
func (c *Cache) applyLocked(changes []Change, keys []ObjectKey) []configstore.Change {
	if len(changes) == 0 {
		return nil
	}
	update := c.converter.Apply(changes...)
	if c.ready {
		c.host(update.gateways)
	}
	if keys = slices.Concat(update.Statuses, keys); c.look != nil && len(keys) > 0 {
		c.look(keys)
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
