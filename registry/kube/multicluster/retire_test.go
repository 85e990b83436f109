// SPDX-License-Identifier: Apache-2.0

package multicluster

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"

	"github.com/pilotkit/pilotkit/registry/kube"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// gated is an updater whose batches wait.
type gated struct {
	xdsupdate.Discard
	open    chan struct{}
	batches int
}

func (g *gated) UpdateBatch(publish func(xdsupdate.XDSUpdater)) {
	<-g.open
	publish(g)
	g.batches++
}

// A registry that left the aggregate ends after it has handled its queue, even while the controller
// stops, because a registry that has ended removes nothing.
func TestRetireHandlesWhatIsQueued(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		updater := &gated{open: make(chan struct{})}
		r := &remote{Controller: &Controller{ctx: ctx, options: Options{Logger: slog.New(slog.DiscardHandler)}}}
		former := &running{registry: kube.New(nil, updater), stop: make(chan struct{})}
		former.done.Go(func() { former.registry.Run(former.stop) })
		former.registry.UpdateMesh(kube.Mesh{})
		synctest.Wait() // it is at work
		former.registry.UpdateMesh(kube.Mesh{TrustDomain: "other"})
		retired := make(chan struct{})
		go func() {
			defer close(retired)
			r.retire(former)
		}()
		synctest.Wait()
		select {
		case <-former.stop:
			t.Error("the registry was ended while something was queued")
		default:
		}
		close(updater.open)
		<-retired
		if updater.batches != 2 {
			t.Errorf("%d batches, want 2", updater.batches)
		}
	})
}
