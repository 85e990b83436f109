// SPDX-License-Identifier: Apache-2.0

package notify

// Kept returns the values that the queue still references in its retained buffers, and the capacity
// of these.
func (q *Queue[T]) Kept() (values []T, room int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, buffer := range [][]entry[T]{q.queued, q.work.batch} {
		room += cap(buffer)
		for _, e := range buffer[:cap(buffer)] {
			if e.sub == nil {
				values = append(values, e.value)
			}
		}
	}
	return values, room
}

// Queued returns the number of entries that no worker has taken.
func (q *Queue[T]) Queued() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.queued)
}
