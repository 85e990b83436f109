// SPDX-License-Identifier: Apache-2.0

package follow_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/pilotkit/pilotkit/configstore/kube/internal/follow"
)

// forbidden is a resource without read permission.
type forbidden struct{}

func (forbidden) List(context.Context, metav1.ListOptions) (*corev1.NodeList, error) {
	return nil, apierrors.NewForbidden(schema.GroupResource{Resource: "nodes"}, "", nil)
}

func (forbidden) Watch(context.Context, metav1.ListOptions) (watch.Interface, error) {
	return nil, apierrors.NewForbidden(schema.GroupResource{Resource: "nodes"}, "", nil)
}

// TestOptionalKindCountsAsRead: a forbidden optional kind counts as synced, and Apply is called, so
// that its users do not wait for it.
func TestOptionalKindCountsAsRead(t *testing.T) {
	applied := make(chan []follow.Change, 10)
	s := follow.New(nil, forbidden{}, &corev1.Node{}, follow.Options{
		Kind: "nodes", Optional: true, MaxBackoff: time.Second, Logger: slog.New(slog.DiscardHandler),
		Apply: func(changes []follow.Change) { applied <- changes },
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		s.Run(ctx)
		close(ended)
	}()
	if changes := <-applied; len(changes) != 0 || !s.HasSynced() || !apierrors.IsForbidden(s.Err()) {
		t.Errorf("%d changes, synced %t, error %v", len(changes), s.HasSynced(), s.Err())
	}
	cancel()
	<-ended
}
