// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"

	"github.com/pilotkit/pilotkit/configstore"
)

// statusQueue holds the objects whose status is to be looked at: those of which there
// is something new to say before all others.
type statusQueue struct {
	workqueue.TypedRateLimitingInterface[configstore.ConfigKey]
	order *urgentFirst
}

func newStatusQueue() *statusQueue {
	type key = configstore.ConfigKey
	order := &urgentFirst{urgent: map[key]bool{}, queued: map[key]bool{}}
	return &statusQueue{
		order: order,
		TypedRateLimitingInterface: workqueue.NewTypedRateLimitingQueueWithConfig(
			workqueue.NewTypedItemExponentialFailureRateLimiter[key](time.Second, time.Minute),
			workqueue.TypedRateLimitingQueueConfig[key]{DelayingQueue: workqueue.NewTypedDelayingQueueWithConfig(
				workqueue.TypedDelayingQueueConfig[key]{Queue: workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[key]{Queue: order})},
			)},
		),
	}
}

// addUrgent adds an object before those that are not urgent.
func (q *statusQueue) addUrgent(key configstore.ConfigKey) {
	q.order.mark(key)
	q.Add(key)
}

// urgentFirst is the order of a workqueue. An object may be in both of its lists, if it
// has become urgent while it was queued; it is handed out once.
type urgentFirst struct {
	mu     sync.Mutex
	urgent map[configstore.ConfigKey]bool // until they are handed out
	queued map[configstore.ConfigKey]bool
	first  []configstore.ConfigKey
	second []configstore.ConfigKey
}

var _ workqueue.Queue[configstore.ConfigKey] = (*urgentFirst)(nil)

func (u *urgentFirst) mark(key configstore.ConfigKey) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.urgent[key] = true
}

// Touch implements workqueue.Queue.
func (u *urgentFirst) Touch(key configstore.ConfigKey) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.queued[key] && u.urgent[key] {
		u.first = append(u.first, key)
	}
}

// Push implements workqueue.Queue.
func (u *urgentFirst) Push(key configstore.ConfigKey) {
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
func (u *urgentFirst) Len() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.queued)
}

// Pop implements workqueue.Queue. It is called if Len is not 0.
func (u *urgentFirst) Pop() configstore.ConfigKey {
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
