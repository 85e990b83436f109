// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"context"

	"github.com/pilotkit/pilotkit/registry"
)

// Catalogue is the source of a bridge.
type Catalogue interface {
	// List returns the complete content of the catalogue. The result then belongs to the bridge,
	// but may share parts with earlier results. An error means that the content is unknown, and
	// nothing changes. An incomplete read must be an error. List must return when ctx ends.
	List(ctx context.Context) (Listing, error)
}

// Watcher is the optional ability of a Catalogue to report changes. Without it the bridge lists
// every Options.Interval.
type Watcher interface {
	// Watch returns nil as soon as the catalogue may have changed since the list with a revision.
	// It returns an error if it cannot report changes any more; then the bridge lists again. It
	// must return when ctx ends.
	Watch(ctx context.Context, revision string) error
}

// Listing is the complete content of a catalogue.
type Listing struct {
	// Records are the services, in any order, without duplicates.
	Records []Record
	// Revision identifies the state of the catalogue that was listed, or an earlier one. The bridge
	// passes it to Watch, and does not interpret it.
	Revision string
}

// Record is a service in a catalogue.
type Record struct {
	// Service is the service. Hostname and Attributes.Namespace identify it.
	Service *registry.Service
	// Endpoints are all endpoints of the service, in any order.
	Endpoints []*registry.Endpoint
	// Err reports that the catalogue's state of the service cannot be used: the service keeps its
	// last good state. Then only the identity of Service is used, and Endpoints are ignored.
	// Catalogues need not repeat the checks of memory.Definition.Check, which the bridge makes
	// itself.
	Err error
}
