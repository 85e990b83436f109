// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"log/slog"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// Options configure a Registry. The zero value works.
type Options struct {
	// Provider is the kind of the registry. Services without a provider get it. The default is
	// registry.Memory.
	Provider registry.ProviderID
	// Cluster is the cluster of the registry. The default is the empty name.
	Cluster registry.ClusterID
	// Updater is called for every change. If it is also an xdsupdate.EndpointDeltaUpdater, it gets
	// only the changed endpoints instead of complete lists. A nil updater is xdsupdate.Discard, and a
	// warning.
	Updater xdsupdate.XDSUpdater
	// HasSynced reports whether the host has set the initial state. The registry's HasSynced calls
	// it, with no lock held. Nil means that the registry has synced from the start.
	HasSynced func() bool
	// Logger receives a warning if there is no updater, and an error for each panic of the updater or
	// of a handler, with the stack. Nil discards.
	Logger *slog.Logger
}
