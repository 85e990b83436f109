// SPDX-License-Identifier: Apache-2.0

// Package statuswriter writes statuses from the one process that is elected, by priority and with a
// limited rate. The package contains the logic that is independent of the kind of objects.
package statuswriter

import (
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
)

// Queue contains the objects whose status is to be checked. Objects whose wanted status has changed
// come first.
type Queue[K comparable] struct {
	workqueue.TypedRateLimitingInterface[K]

	order *urgentFirst[K]
}

// newQueue returns an empty queue. A failed object is retried after 1, 2, 4 seconds up to a minute.
func newQueue[K comparable]() *Queue[K] {
	order := &urgentFirst[K]{urgent: map[K]bool{}, queued: map[K]bool{}}
	return &Queue[K]{
		order: order,
		TypedRateLimitingInterface: workqueue.NewTypedRateLimitingQueueWithConfig(
			workqueue.NewTypedItemExponentialFailureRateLimiter[K](time.Second, time.Minute),
			workqueue.TypedRateLimitingQueueConfig[K]{DelayingQueue: workqueue.NewTypedDelayingQueueWithConfig(
				workqueue.TypedDelayingQueueConfig[K]{Queue: workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[K]{Queue: order})},
			)},
		),
	}
}

// AddUrgent adds an object with priority over the objects of Add.
func (q *Queue[K]) AddUrgent(key K) {
	q.order.mark(key)
	q.Add(key)
}

// urgentFirst is the order of a workqueue. An object is in both of its lists if it has become
// urgent while it was queued; it is returned once.
type urgentFirst[K comparable] struct {
	mu     sync.Mutex
	urgent map[K]bool // until Pop returns them
	queued map[K]bool
	first  []K
	second []K
}

var _ workqueue.Queue[int] = (*urgentFirst[int])(nil)

func (u *urgentFirst[K]) mark(key K) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.urgent[key] = true
}

// Touch implements workqueue.Queue.
func (u *urgentFirst[K]) Touch(key K) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.queued[key] && u.urgent[key] {
		u.first = append(u.first, key)
	}
}

// Push implements workqueue.Queue.
func (u *urgentFirst[K]) Push(key K) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.queued[key] = true
	if u.urgent[key] {
		u.first = append(u.first, key)
	} else {
		u.second = append(u.second, key)
	}
}

// Len implements workqueue.Queue.
func (u *urgentFirst[K]) Len() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.queued)
}

// Pop implements workqueue.Queue. It must only be called if Len is not 0.
func (u *urgentFirst[K]) Pop() K {
	u.mu.Lock()
	defer u.mu.Unlock()
	for {
		from := &u.first
		if len(u.first) == 0 {
			from = &u.second
		}
		key := (*from)[0]
		*from = (*from)[1:]
		if u.queued[key] {
			delete(u.queued, key)
			delete(u.urgent, key)
			return key
		}
	}
}
