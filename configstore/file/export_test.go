// SPDX-License-Identifier: Apache-2.0

package file

// LoseNotifications does what an overflow of the kernel's queue does.
func (s *Source) LoseNotifications() {
	s.turn <- struct{}{}
	defer func() { <-s.turn }()
	s.watcher.noteAll()
}
