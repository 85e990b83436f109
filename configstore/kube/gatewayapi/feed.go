// SPDX-License-Identifier: Apache-2.0

package gatewayapi

import (
	"log/slog"
	"slices"
	"time"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/internal/derived"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/internal/configfeed"
)

// subscribe subscribes to the source and converts its changes.
func (c *Cache) subscribe() {
	var kinds []configstore.GroupVersionKind
	for _, r := range append(gatewayResources(), coreResources()...) {
		if c.source.Schemas().Has(r.gvk) {
			c.resources[r.gvk] = r
			kinds = append(kinds, r.gvk)
		}
	}
	configfeed.Subscribe(c.source, kinds, c.changed)
	if c.opts.ServiceEntries.Schemas().Has(istio.ServiceEntry) {
		configfeed.Subscribe(c.opts.ServiceEntries, []configstore.GroupVersionKind{istio.ServiceEntry}, c.entriesChanged)
		if c.opts.ServiceEntries != c.source {
			c.awaited = append(c.awaited, c.opts.ServiceEntries)
		}
	}
}

// changed converts a batch of the source.
func (c *Cache) changed(batch []configstore.Change) {
	changes := make([]Change, 0, len(batch))
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
	c.apply(changes, keys, noted)
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
	c.apply(changes, nil, nil)
	c.begin()
}

// apply converts changes and publishes the result. keys are the objects whose present status may
// have changed; the functions of noted record their new state.
func (c *Cache) apply(changes []Change, keys []ObjectKey, noted []func()) {
	c.mu.Lock()
	update := c.converter.Apply(changes...)
	for _, note := range noted {
		note()
	}
	look := c.look
	if c.ready {
		c.publish(derived.Mutations(update.Changes))
		c.host(update.gateways)
	}
	c.mu.Unlock()
	if keys = slices.Concat(update.Statuses, keys); look != nil && len(keys) > 0 {
		look(keys)
	}
}

// begin publishes everything, once the source and the inputs have synced.
func (c *Cache) begin() {
	if c.isReady() || slices.ContainsFunc(c.awaited, func(s configstore.Syncer) bool { return !s.HasSynced() }) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ready {
		return
	}
	c.publish(c.converter.Snapshot().configs.Mutations())
	c.ready = true
	var gateways []Key
	for key := range c.converter.gatewayStates {
		gateways = append(gateways, key)
	}
	c.host(gateways)
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

// oldest is the creation time of configs without one: they come before all others, as in Istio.
func oldest() time.Time { return time.Unix(0, 0).UTC() }

// publish commits a batch.
func (c *Cache) publish(mutations []configstore.Mutation) {
	for i := range mutations {
		if config := &mutations[i].Config; config.CreationTimestamp.IsZero() {
			config.CreationTimestamp = oldest() // not the local time, so that replicas have the same order
		}
	}
	c.published.Publish(mutations)
}
