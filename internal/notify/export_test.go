// SPDX-License-Identifier: Apache-2.0

package notify

// Queued returns the number of entries that no worker has taken.
func (q *Queue[T]) Queued() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.queued)
}
