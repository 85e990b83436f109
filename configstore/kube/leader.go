// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"go.uber.org/atomic"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
)

// Election elects one of several processes by a Lease, as a StatusWriter does, for writers of other
// packages. Create it with NewElection.
//
// Leadership is computed from the clock when it matters; no event has to end it. It lasts for two
// thirds of the lease's duration after the last successful renewal was sent. The other processes
// wait for the whole duration from the time at which they saw the effect of that request, which was
// later. A process whose requests hang, or that was suspended, therefore sees by its clock that its
// leadership has ended, and the requests that it sent before have a third of the duration to
// arrive.
//
// client-go's elector is not suitable, because it reports leadership while it still tries to
// release a Lease that it could not renew, for longer than the other processes wait. The Lease has
// the same form as client-go's, so that processes with either elector can compete for the same
// Lease.
type Election struct {
	// leases is nil if there is no Lease: this process leads while Run runs, and a write may take
	// alone.
	leases  coordination.LeaseInterface
	alone   time.Duration
	running atomic.Bool
	ran     atomic.Bool

	name     string
	identity string
	duration time.Duration
	now      func() time.Time
	logger   *slog.Logger

	mu sync.Mutex
	// renewed is the send time of the last successful renewal, or zero if the Lease is not held.
	renewed time.Time
	// seen is the Lease as it was read last, and seenAt the time at which that version was first
	// read.
	seen   *coordinationv1.Lease
	seenAt time.Time
	err    failure
}

// lasts returns how long leadership lasts after a renewal.
func (e *Election) lasts() time.Duration { return e.duration * 2 / 3 }

// left is Remaining with a Lease. The lock must be held.
func (e *Election) left() time.Duration {
	if e.renewed.IsZero() {
		return 0
	}
	now := e.now()
	// One of the two clocks may stop while a machine is suspended: the later one counts.
	return e.lasts() - max(now.Sub(e.renewed), now.Round(0).Sub(e.renewed.Round(0)))
}

// run is a candidate for leadership until ctx ends, and calls elected each time this process
// becomes the leader.
func (e *Election) run(ctx context.Context, elected func()) {
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

func (e *Election) note(ctx context.Context, err error) {
	if ctx.Err() != nil || apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) { // another process was faster
		return
	}
	if e.err.replace(err) {
		e.logger.Warn("the Lease cannot be taken or renewed", slog.String("lease", e.name), slog.Any("error", err))
	}
}

// attempt acquires or renews the Lease, unless another process holds it. It reports whether this
// process has become the leader, which is also the case if leadership ended while the renewal was
// in flight.
func (e *Election) attempt(ctx context.Context) (began bool, err error) {
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

// mayTake reports whether a Lease is free or held by this process. It is free if it has not changed
// for its duration by the clock of this process. The timestamps of other processes do not count.
func (e *Election) mayTake(lease *coordinationv1.Lease) bool {
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

// acquire makes this process the holder of a Lease that is about to be written.
func (e *Election) acquire(lease *coordinationv1.Lease, now time.Time) {
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

// release releases the Lease, so that another process can lead at once. It is called when this
// process has finished writing.
func (e *Election) release(ctx context.Context) {
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
