// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"slices"
	"time"
)

// holds reports whether a response may come from a server that does not know its content yet. That
// is the first response on a stream, if it removes all objects: in SotW it is empty; in delta it
// removes everything.
func (k *sourceKind) holds(r *response, hold time.Duration) bool {
	if len(r.resources) > 0 || k.written == 0 || k.answered || k.held != nil || hold <= 0 {
		return false
	}
	if !r.delta {
		return true
	}
	removed := make(map[string]struct{}, len(r.removed))
	for _, name := range r.removed {
		if k.has(name) {
			removed[name] = struct{}{}
		}
	}
	return len(removed) == k.written
}

// has reports whether the object of a resource is in the store.
func (k *sourceKind) has(resource string) bool {
	name, namespace, _ := splitName(resource)
	o := k.objects[sourceName{namespace, name}]
	return o != nil && o.owned.Config != nil
}

// hold holds a response back.
func (k *sourceKind) hold(r *response, until time.Time) {
	k.held, k.heldUntil = r, until
}

// release drops the response that is held back.
func (k *sourceKind) release() { k.held, k.heldUntil = nil, time.Time{} }

// reconsider drops the parts of the held response that a later response of the stream contradicts:
// in SotW all of it; in delta the objects that the later response contains or removes itself.
func (k *sourceKind) reconsider(r *response) {
	if k.held == nil {
		return
	}
	if !r.delta {
		k.release()
		return
	}
	said := make(map[string]struct{}, len(r.resources)+len(r.removed))
	for i := range r.resources {
		if name, err := identify(&r.resources[i]); err == nil {
			said[resourceName(name.name, name.namespace)] = struct{}{}
		}
	}
	for _, name := range r.removed {
		said[name] = struct{}{}
	}
	rest := *k.held
	rest.removed = slices.DeleteFunc(slices.Clone(rest.removed), func(name string) bool {
		_, ok := said[name]
		return ok || !k.has(name)
	})
	if k.held = &rest; len(rest.removed) == 0 {
		k.release()
	}
}
