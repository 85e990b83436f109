// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"fmt"
	"sync"
	"time"

	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"

	"github.com/pilotkit/pilotkit/internal/options"
)

// NewElection returns an election by the Lease of opts. It uses only the fields for the Lease and
// the Logger. Without a Lease this process leads while Run runs. It returns an error if the config
// is unusable.
func NewElection(config *rest.Config, opts ...StatusOptions) (*Election, error) {
	e, err := newElection(config, options.One("kube.NewElection", opts), time.Now)
	if err != nil {
		return nil, fmt.Errorf("kube.NewElection: %w", err)
	}
	return e, nil
}

func newElection(config *rest.Config, o StatusOptions, now func() time.Time) (*Election, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	e := &Election{name: o.Lease, identity: o.Identity, duration: o.LeaseDuration, alone: defaultWriteTimeout, now: now, logger: o.Logger}
	if o.Lease == "" {
		return e, nil
	}
	client, err := coordination.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	e.leases = client.Leases(o.LeaseNamespace)
	return e, nil
}

// Run is a candidate for leadership until stop is closed, and calls elected each time this process
// becomes the leader. It does not release the Lease: see Release. A second call panics.
func (e *Election) Run(stop <-chan struct{}, elected func()) {
	if e.ran.Swap(true) {
		panic("kube: Election.Run was called twice")
	}
	ctx, cancel := context.WithCancel(quiet(context.Background())) //nolint:forbidigo // The life of Run.
	var running sync.WaitGroup
	running.Go(func() {
		if e.leases != nil {
			e.run(ctx, elected)
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

// Leading reports whether this process is the leader.
func (e *Election) Leading() bool { return e.Remaining() > 0 }

// Remaining returns how long this process may write unless it renews the Lease. It may not write if
// the result is not positive. A request must end within that time.
func (e *Election) Remaining() time.Duration {
	switch {
	case e.leases != nil:
		e.mu.Lock()
		defer e.mu.Unlock()
		return e.left()
	case e.running.Load():
		return e.alone
	default:
		return 0
	}
}

// Release releases the Lease, so that another process can lead at once. Call it after Run, when
// this process has finished writing. Without it the other processes wait for the Lease's duration.
func (e *Election) Release() {
	if e.leases != nil {
		e.release(quiet(context.Background())) //nolint:forbidigo // That of Run has ended.
	}
}
