// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
)

// election holds a Lease if it can get it, so that of several processes one leads.
//
// Leadership is a question of time, asked when it matters, and not a state that
// somebody has to end: it lasts until two thirds of the lease's duration after the last
// request that has renewed it was sent. Others wait for the whole duration, from when
// they have seen that request's effect, which was later. A process whose requests hang, or
// that was stopped, finds that it leads no more by looking at its clock, and what it
// sends with its last leadership has a third of the duration to arrive.
//
// client-go's elector does not serve: it says that it leads while it still tries to
// release a Lease that it could not renew, for longer than others wait. The Lease has
// the same form as its Leases, so that processes with either can stand for the same one.
type election struct {
	leases   coordination.LeaseInterface
	name     string
	identity string
	duration time.Duration
	now      func() time.Time
	logger   *slog.Logger

	mu sync.Mutex
	// renewed is when the request was sent that has taken or renewed the Lease; zero if
	// it is not held.
	renewed time.Time
	// seen is the Lease as it was read last, and seenAt when it was first read so.
	seen   *coordinationv1.Lease
	seenAt time.Time
	err    failure
}

// lasts is how long leadership lasts from the last renewal.
func (e *election) lasts() time.Duration { return e.duration * 2 / 3 }

// remaining is how long this process leads if nothing happens; not positive: it does not
// lead.
func (e *election) remaining() time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.left()
}

func (e *election) left() time.Duration {
	if e.renewed.IsZero() {
		return 0
	}
	now := e.now()
	// While a machine sleeps one of its two clocks may stand still: the later one counts.
	return e.lasts() - max(now.Sub(e.renewed), now.Round(0).Sub(e.renewed.Round(0)))
}

// run stands for election until ctx ends, and calls elected each time when this process
// has become the leader.
func (e *election) run(ctx context.Context, elected func()) {
	for ctx.Err() == nil {
		began, err := e.attempt(ctx)
		if e.note(ctx, err); began {
			elected()
		}
		pause := e.duration / 8
		pause += rand.N(pause/4 + 1) //nolint:gosec // So that processes do not come all at once.
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
		}
	}
}

func (e *election) note(ctx context.Context, err error) {
	if ctx.Err() != nil || apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) { // Another one was faster.
		return
	}
	if e.err.replace(err) {
		e.logger.Warn("the Lease cannot be taken or renewed", slog.String("lease", e.name), slog.Any("error", err))
	}
}

// attempt takes the Lease, or renews it, unless another process has it. It reports
// whether leadership has begun by that: it may have ended while the renewal was on its way.
func (e *election) attempt(ctx context.Context) (began bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, e.duration/3)
	defer cancel()
	lease, err := e.leases.Get(ctx, e.name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		lease = &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: e.name}}
	case err != nil:
		return false, err
	}
	if !e.mayTake(lease) {
		return false, nil
	}
	sent := e.now()
	e.acquire(lease, sent)
	if lease.ResourceVersion == "" {
		lease, err = e.leases.Create(ctx, lease, metav1.CreateOptions{})
	} else {
		lease, err = e.leases.Update(ctx, lease, metav1.UpdateOptions{})
	}
	if err != nil {
		return false, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	led := e.left() > 0
	e.renewed, e.seen, e.seenAt = sent, lease, e.now()
	return !led && e.left() > 0, nil
}

// mayTake reports whether a Lease that was read is free, or this process's. It is free
// when it has not changed for its duration, by the clock of this process: what others
// have written as the time does not count.
func (e *election) mayTake(lease *coordinationv1.Lease) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.seen == nil || e.seen.UID != lease.UID || e.seen.ResourceVersion != lease.ResourceVersion {
		e.seen, e.seenAt = lease.DeepCopy(), e.now()
	}
	holder := valueOr(lease.Spec.HolderIdentity, "")
	if holder == e.identity {
		return true
	}
	e.renewed = time.Time{}
	duration := time.Duration(valueOr(lease.Spec.LeaseDurationSeconds, 0)) * time.Second
	return holder == "" || e.now().Sub(e.seenAt) >= max(duration, e.duration)
}

// acquire makes this process the holder of a Lease that is going to be written.
func (e *election) acquire(lease *coordinationv1.Lease, now time.Time) {
	spec, at := &lease.Spec, metav1.NewMicroTime(now)
	if valueOr(spec.HolderIdentity, "") != e.identity {
		transitions := valueOr(spec.LeaseTransitions, 0)
		if spec.HolderIdentity != nil {
			transitions++
		}
		spec.LeaseTransitions, spec.AcquireTime = &transitions, &at
	}
	seconds := int32((e.duration + time.Second - 1) / time.Second) //nolint:gosec // 68 years
	spec.HolderIdentity, spec.LeaseDurationSeconds, spec.RenewTime = &e.identity, &seconds, &at
}

// release lets others take the Lease at once. It is called when nothing is written any
// more.
func (e *election) release(ctx context.Context) {
	e.mu.Lock()
	held, lease := !e.renewed.IsZero(), e.seen
	e.renewed = time.Time{}
	e.mu.Unlock()
	if !held {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, e.duration/3)
	defer cancel()
	lease = lease.DeepCopy()
	nobody, second := "", int32(1)
	lease.Spec.HolderIdentity, lease.Spec.LeaseDurationSeconds = &nobody, &second
	if _, err := e.leases.Update(ctx, lease, metav1.UpdateOptions{}); err != nil {
		e.logger.Warn("the Lease was not released", slog.String("lease", e.name), slog.Any("error", err))
	}
}

func valueOr[T any](p *T, absent T) T {
	if p == nil {
		return absent
	}
	return *p
}
