// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/pilotkit/pilotkit/configstore"
)

// Await blocks until the cache has a write: an object at the revision that the write returned or a
// later one, or, for an empty revision, after a Delete, no such object. If the Options exclude the
// written object from this cache, Await returns only when ctx ends. The error is the cause of ctx's
// end, or ErrUnknownKind.
//
//	revision, err := cache.Update(config)
//	...
//	err = cache.Await(ctx, config.Key(), revision)
func (c *Cache) Await(ctx context.Context, key configstore.ConfigKey, revision string) error {
	schema, ok := c.Schemas().Find(key.Kind)
	if !ok {
		return fmt.Errorf("await %s: %w", key.Object(), c.Schemas().UnknownKind(key.Kind, nil))
	}
	key.Kind = schema.GroupVersionKind
	for ctx.Err() == nil {
		from := c.Revision()
		if shows(c.Get(key.Kind, key.Name, key.Namespace), revision) {
			return nil
		}
		for change, err := range c.Watch(ctx, from) {
			if errors.Is(err, configstore.ErrCompacted) {
				break // many changes at once: read the state again
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

// shows reports whether an object, or nil, is at a revision or a later one. The revisions of one
// kind are comparable since Kubernetes 1.35; revisions of another form match only if they are
// equal.
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
