// SPDX-License-Identifier: Apache-2.0

package conformance

import "time"

// creationClock gives applied objects their creation times: the explicit one;
// else an updated object keeps its own, and a created one gets the start of 2024
// plus a second for each object created before.
type creationClock struct{ attempts int }

// next returns the creation time to write a document with. stored is that of the
// stored object, "" if the document will be created.
func (c *creationClock) next(doc document, stored string) string {
	if stored == "" {
		c.attempts++
	}
	switch explicit := doc.created(); {
	case explicit != timeZero:
		return explicit
	case stored != "":
		return stored
	default:
		start := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
		return formatTime(start.Add(time.Duration(c.attempts-1) * time.Second))
	}
}
