// SPDX-License-Identifier: Apache-2.0

package xdsupdate

// Discard is an XDSUpdater that does nothing, for registries whose changes are not
// pushed: a Multi of no updaters. It takes changes of endpoints, too, and publishes
// batches.
type Discard struct{ deltaMulti }

var (
	_ XDSUpdater           = Discard{}
	_ EndpointDeltaUpdater = Discard{}
	_ BatchUpdater         = Discard{}
)
