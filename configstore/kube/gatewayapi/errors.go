// SPDX-License-Identifier: Apache-2.0

package gatewayapi

import (
	"maps"
	"slices"

	"github.com/pilotkit/pilotkit/configstore"
)

// Error is a problem that keeps an object of the source from being converted as written, or a
// config from being published.
type Error struct {
	// Object is an object of the source, or a resulting Gateway, VirtualService or DestinationRule.
	Object configstore.ConfigKey
	// Err is the cause, never nil.
	Err error
}

// Error returns "Kind namespace/name: reason".
func (e *Error) Error() string { return e.Object.Object() + ": " + e.Err.Error() }

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }

// Errors returns the present errors, sorted: objects that cannot be decoded, which keep their last
// good state; ReferenceGrants with unknown fields, which grant nothing; and configs that cannot be
// published, which keep their last good state. All other problems of an object are in its status.
func (c *Cache) Errors() []*Error {
	errs := c.stage.Refused()
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.Copy(errs, c.unread)
	var out []*Error
	for _, key := range slices.SortedFunc(maps.Keys(errs), configstore.ConfigKey.Compare) {
		out = append(out, &Error{key, errs[key]})
	}
	return out
}

var _ configstore.SourceStater = (*Cache)(nil)

// SourceState implements configstore.SourceStater, by Errors. The source itself reports whether it
// is fresh.
func (c *Cache) SourceState() configstore.SourceState {
	s := configstore.SourceState{Synced: c.HasSynced()}
	for _, e := range c.Errors() {
		s.Problems = append(s.Problems, configstore.SourceProblem{Object: e.Object, Text: e.Error()})
	}
	return s
}
