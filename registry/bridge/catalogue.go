// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"context"

	"github.com/pilotkit/pilotkit/registry"
)

// Catalogue is what a bridge reads.
type Catalogue interface {
	// List returns everything that the catalogue has. What it returns belongs to the
	// bridge then, but may share parts with what it has returned before. An error means
	// that nothing is known, and nothing changes: what cannot be read completely is an
	// error. List returns when ctx ends.
	List(ctx context.Context) (Listing, error)
}

// Watcher is the optional ability of a Catalogue to tell when it has changed. Without
// it the bridge lists every Options.Interval.
type Watcher interface {
	// Watch returns nil as soon as the catalogue may have changed since the list of a
	// revision, and an error if it cannot tell any more; then the bridge lists again. It
	// returns when ctx ends.
	Watch(ctx context.Context, revision string) error
}

// Listing is everything that a catalogue has.
type Listing struct {
	// Records are the services, in any order, none twice.
	Records []Record
	// Revision says of which moment the list is, or of an earlier one; the bridge hands
	// it to Watch, and makes nothing of it.
	Revision string
}

// Record is what a catalogue has of one service.
type Record struct {
	// Service is the service. Hostname and Attributes.Namespace identify it.
	Service *registry.Service
	// Endpoints are all its endpoints, in any order.
	Endpoints []*registry.Endpoint
	// Err says why the catalogue's state of the service cannot be used: the service keeps
	// its last good state. Of Service only the identity counts then, and Endpoints do
	// not. What the bridge finds itself, by memory.Definition.Check, need not be checked.
	Err error
}
