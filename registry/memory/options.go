// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"log/slog"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// Options configure a Registry. The zero value works.
type Options struct {
	// Provider is the kind of the registry, which its services get that name
	// none. The default is registry.Memory.
	Provider registry.ProviderID
	// Cluster is the cluster that the registry stands for. The default is the
	// empty name.
	Cluster registry.ClusterID
	// Updater is called for every change. If it also is an
	// xdsupdate.EndpointDeltaUpdater, it gets changed endpoints only, rather than
	// complete lists. A nil updater is xdsupdate.Discard.
	Updater xdsupdate.XDSUpdater
	// HasSynced reports whether the program has filled in its initial state; it is
	// asked by HasSynced of the registry, with no lock held. The default is nil:
	// the registry has synced from the start.
	HasSynced func() bool
	// Logger gets an error for each call of the updater or of a handler that
	// panicked, with the stack. The default, nil, discards.
	Logger *slog.Logger
}
