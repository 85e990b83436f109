// SPDX-License-Identifier: Apache-2.0

package registry

import "github.com/pilotkit/pilotkit/configstore"

// Event is the kind of a change of a service or a workload. It is the same type as for config
// events.
type Event = configstore.Event

// The events. The zero value is not a valid event.
const (
	EventAdd    = configstore.EventAdd
	EventUpdate = configstore.EventUpdate
	EventDelete = configstore.EventDelete
)
