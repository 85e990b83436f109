// SPDX-License-Identifier: Apache-2.0

package registry

import "strconv"

// Event is the kind of a change of a service or a workload.
type Event int

// The events. The zero value is none of them.
const (
	EventAdd Event = iota + 1
	EventUpdate
	EventDelete
)

// String returns "add", "update" or "delete".
func (e Event) String() string {
	switch e {
	case EventAdd:
		return "add"
	case EventUpdate:
		return "update"
	case EventDelete:
		return "delete"
	default:
		return "Event(" + strconv.Itoa(int(e)) + ")"
	}
}
