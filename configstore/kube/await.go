// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/pilotkit/pilotkit/configstore"
)

// Await returns nil when the cache shows a write: an object at the revision that
// the write returned or a later one, or, for an empty revision, after a Delete,
// that there is no such object. If the object that was written is not for this
// cache, because of the Options, the wait ends with ctx only. The error is
// the cause of ctx's end, or ErrUnknownKind.
//
//	revision, err := cache.Update(config)
//	...
//	err = cache.Await(ctx, config.Key(), revision)
func (c *Cache) Await(ctx context.Context, key configstore.ConfigKey, revision string) error {
	schema, ok := c.Schemas().Find(key.Kind)
	if !ok {
		return fmt.Errorf("await %s: %w %s", key.Object(), configstore.ErrUnknownKind, key.Kind)
	}
	key.Kind = schema.GroupVersionKind
	for ctx.Err() == nil {
		from := c.Revision()
		if shows(c.Get(key.Kind, key.Name, key.Namespace), revision) {
			return nil
		}
		for change, err := range c.Watch(ctx, from) {
			if errors.Is(err, configstore.ErrCompacted) {
				break // Many changes at once: look again.
			}
			if change.Curr.Key() != key {
				continue
			}
			curr := change.Curr
			if change.Event == configstore.EventDelete {
				curr = nil
			}
			if shows(curr, revision) {
				return nil
			}
		}
	}
	return fmt.Errorf("await %s: %w", key.Object(), context.Cause(ctx))
}

// shows reports whether an object, or nil, is what a revision is about or a later
// state. The revisions of one kind can be compared since Kubernetes 1.35; should
// they not be of that form, only the same one counts.
func shows(c *configstore.Config, revision string) bool {
	if c == nil || revision == "" {
		return c == nil && revision == ""
	}
	order, err := resourceversion.CompareResourceVersion(c.ResourceVersion, revision)
	if err != nil {
		return c.ResourceVersion == revision
	}
	return order >= 0
}
