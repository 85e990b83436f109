// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"errors"
	"fmt"
)

// ErrHeld means that a list was not accepted because it drops too much.
var ErrHeld = errors.New("the list is held back")

// hold returns the reason why a list is not accepted, or nil.
func (b *Bridge) hold(next content) error {
	switch {
	case b.accept.Swap(false):
		return nil
	case len(next.services) == 0 && b.doubtful && len(b.shown.services) > 0:
		return fmt.Errorf("%w: it is empty, instead of %s, after an error", ErrHeld, b.shown)
	case len(next.services) == 0 && b.doubtful && !b.synced.Load():
		return b.await(next)
	case b.drops(b.shown, next):
		return b.await(next)
	default:
		return nil
	}
}

// await returns an error until enough lists have confirmed the first one.
func (b *Bridge) await(next content) error {
	if b.holds > 0 && b.drops(b.held, next) {
		b.holds = 0
	}
	if b.holds >= b.opts.Confirmations {
		return nil
	}
	b.held = next
	b.holds++
	missing := b.opts.Confirmations - b.holds + 1
	if !b.synced.Load() {
		return fmt.Errorf("%w: the first list is empty, after an error; lists that have to confirm it: %d", ErrHeld, missing)
	}
	return fmt.Errorf("%w: it has %s, instead of %s; lists that have to confirm it: %d", ErrHeld, next, b.shown, missing)
}

// drops reports whether a content has so much less than another one that it has to be confirmed.
func (b *Bridge) drops(from, to content) bool {
	return float64(from.missing(to)) > b.opts.MaxDrop*float64(len(from.services)) ||
		float64(from.endpoints-to.endpoints) > b.opts.MaxDrop*float64(from.endpoints)
}

// missing returns the number of services that another content does not have.
func (c content) missing(in content) int {
	gone := 0
	for k := range c.services {
		if _, ok := in.services[k]; !ok {
			gone++
		}
	}
	return gone
}

// String returns "2 services with 5 endpoints".
func (c content) String() string {
	return fmt.Sprintf("%d services with %d endpoints", len(c.services), c.endpoints)
}
