// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"log/slog"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// campaign stands for election until ctx ends, and again whenever the Lease is
// lost.
func (w *StatusWriter) campaign(ctx context.Context) {
	if w.opts.Lease == "" {
		w.lead(true)
		<-ctx.Done()
		w.lead(false)
		return
	}
	for ctx.Err() == nil {
		if err := w.stand(ctx); err != nil {
			w.opts.Logger.Error("no status will be written", slog.Any("error", err))
			return
		}
	}
}

// stand returns when the Lease was lost or ctx has ended.
func (w *StatusWriter) stand(ctx context.Context) error {
	client, err := coordination.NewForConfig(w.config)
	if err != nil {
		return err
	}
	// The elector calls OnStartedLeading on a goroutine that it does not join.
	var mu sync.Mutex
	over := false
	lead := func(leading bool) {
		mu.Lock()
		defer mu.Unlock()
		if !over {
			over = !leading
			w.lead(leading)
		}
	}
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Name: w.opts.Lease, Namespace: w.opts.LeaseNamespace},
			Client:     client,
			LockConfig: resourcelock.ResourceLockConfig{Identity: w.opts.Identity},
		},
		LeaseDuration:   w.opts.LeaseDuration,
		RenewDeadline:   w.opts.LeaseDuration * 2 / 3,
		RetryPeriod:     w.opts.LeaseDuration / 8,
		ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { lead(true) },
			OnStoppedLeading: func() { lead(false) },
		},
	})
	if err != nil {
		return err
	}
	elector.Run(ctx)
	return nil
}
