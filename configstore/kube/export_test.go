// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"encoding/json"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/pilotkit/pilotkit/configstore"
)

// Follow does the reading half of Run until ctx ends, so that the time before Run can be tested.
func (c *Cache) Follow(ctx context.Context) {
	c.followed.Store(true)
	c.follow(ctx)
}

// Listed reports whether the initial state has been read.
func (c *Cache) Listed() bool { return c.listed() }

// Rewrite returns the text that a write makes from a stored text.
func Rewrite(stored json.RawMessage, old, next proto.Message) (json.RawMessage, error) {
	return rewrite(stored, old, next)
}

// RewriteOwners is Rewrite for the owners of an object.
func RewriteOwners(stored json.RawMessage, old, next []configstore.OwnerReference) (json.RawMessage, error) {
	return rewriteOwners(stored, old, next)
}

// MergeStatus returns the status that a StatusWriter makes from a stored status.
func MergeStatus(text json.RawMessage, generation int64, conditions []Condition, now time.Time) (json.RawMessage, bool, error) {
	return mergeStatus(text, generation, conditions, now)
}
