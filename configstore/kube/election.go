// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"fmt"
	"sync"
	"time"

	"go.uber.org/atomic"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"

	"github.com/pilotkit/pilotkit/internal/options"
)

// Election decides by a Lease which of several processes writes, as a StatusWriter does,
// for what other packages write. Create it with NewElection.
type Election struct {
	opts StatusOptions
	// election is nil if there is no Lease: this process leads while it runs.
	election *election
	running  atomic.Bool
	ran      atomic.Bool
}

// NewElection returns an election by the Lease that opts names, of which only that and the
// Logger count. Without a Lease this process leads while Run runs. The error is that of an
// unusable config.
func NewElection(config *rest.Config, opts ...StatusOptions) (*Election, error) {
	o, err := options.One("kube.NewElection", opts).withDefaults()
	if err != nil {
		return nil, fmt.Errorf("kube.NewElection: %w", err)
	}
	e := &Election{opts: o}
	if o.Lease == "" {
		return e, nil
	}
	if e.election, err = newElection(config, o, time.Now); err != nil {
		return nil, fmt.Errorf("kube.NewElection: %w", err)
	}
	return e, nil
}

func newElection(config *rest.Config, o StatusOptions, now func() time.Time) (*election, error) {
	client, err := coordination.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return &election{
		leases: client.Leases(o.LeaseNamespace), name: o.Lease, identity: o.Identity, duration: o.LeaseDuration,
		now: now, logger: o.Logger,
	}, nil
}

// Run stands for election until stop is closed, and calls elected each time when this
// process has become the leader. It does not give the Lease away: see Release. A second
// call panics.
func (e *Election) Run(stop <-chan struct{}, elected func()) {
	if e.ran.Swap(true) {
		panic("kube: Election.Run was called twice")
	}
	ctx, cancel := context.WithCancel(quiet(context.Background())) //nolint:forbidigo // The life of Run.
	var running sync.WaitGroup
	running.Go(func() {
		if e.election != nil {
			e.election.run(ctx, elected)
			return
		}
		e.running.Store(true)
		elected()
	})
	<-stop
	cancel()
	running.Wait()
	e.running.Store(false)
}

// Leading reports whether this process is the one that writes.
func (e *Election) Leading() bool { return e.Remaining() > 0 }

// Remaining is how long this process may write if it does not renew the Lease; not positive:
// it may not. A request must end within that time.
func (e *Election) Remaining() time.Duration {
	switch {
	case e.election != nil:
		return e.election.remaining()
	case e.running.Load():
		return defaultWriteTimeout
	default:
		return 0
	}
}

// Release lets others take the Lease at once. Call it after Run, when nothing is written any
// more; without it they wait for the Lease's duration.
func (e *Election) Release() {
	if e.election != nil {
		e.election.release(quiet(context.Background())) //nolint:forbidigo // That of Run has ended.
	}
}
