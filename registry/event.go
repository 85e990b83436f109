// SPDX-License-Identifier: Apache-2.0

package registry

import "github.com/pilotkit/pilotkit/configstore"

// Event is the kind of a change of a service or a workload: the same type as that
// of config events.
type Event = configstore.Event

// The events. The zero value is none of them.
const (
	EventAdd    = configstore.EventAdd
	EventUpdate = configstore.EventUpdate
	EventDelete = configstore.EventDelete
)
