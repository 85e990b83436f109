// SPDX-License-Identifier: Apache-2.0

package file

import "time"

// LoseNotifications simulates an overflow of the kernel's queue.
func (s *Source) LoseNotifications() {
	s.turn <- struct{}{}
	defer func() { <-s.turn }()
	s.watcher.noteAll()
}

// SetCompletion sets how long Run waits for the rest of what looks unfinished.
func (s *Source) SetCompletion(d time.Duration) {
	s.turn <- struct{}{}
	defer func() { <-s.turn }()
	s.completion = d
}
