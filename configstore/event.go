// SPDX-License-Identifier: Apache-2.0

package configstore

import "strconv"

// Event is the kind of a change.
type Event int

// The events. The zero value is no event.
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

// Change is one event with its objects, by the table in the package comment.
type Change struct {
	Event Event
	// Old is nil for EventAdd and EventDelete.
	Old *Config
	// Curr is never nil.
	Curr *Config
	// Revision is the store-wide revision that the change produced, or 0 if the
	// store has none.
	Revision uint64
}
