// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pilotkit/pilotkit/internal/test/testmain"
)

func TestMain(m *testing.M) { testmain.Verify(m) }

var errBroken = errors.New("broken")

// hang is a request that is answered when ctx ends.
func hang(ctx context.Context) func() error {
	return func() error {
		<-ctx.Done()
		return ctx.Err()
	}
}

// A probe explains a request that takes long. The server's own response takes precedence.
func TestProbe(t *testing.T) {
	t.Parallel()
	forbidden := apierrors.NewForbidden(schema.GroupResource{}, "", nil)
	for name, test := range map[string]struct {
		probe func(context.Context) error
		want  error
	}{
		"a server that is not reached":        {func(context.Context) error { return errBroken }, errBroken},
		"a server that takes no connection":   {func(ctx context.Context) error { return hang(ctx)() }, context.DeadlineExceeded},
		"a server that is slow":               {func(context.Context) error { return nil }, nil},
		"a server that answers with an error": {func(context.Context) error { return forbidden }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				failures := 0
				w := &Watcher{probe: test.probe, failed: func(error) { failures++ }}
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan struct{})
				go func() {
					defer close(done)
					_ = w.Do(ctx, hang(ctx)) // that of ctx
				}()
				time.Sleep(patience - 1)
				synctest.Wait()
				if err := w.Err(); err != nil {
					t.Errorf("at once: %v", err)
				}
				time.Sleep(patience + 2)
				synctest.Wait()
				if err := w.Err(); !errors.Is(err, test.want) {
					t.Errorf("while the request takes long: %v, want %v", err, test.want)
				}
				cancel()
				<-done
				if reported := failures > 0; reported != (test.want != nil) || failures > 1 {
					t.Errorf("%d failures were reported", failures)
				}
			})
		})
	}
}

// The last answer counts. What says that a list is too old, or that the caller has
// gone, is none.
func TestLastAnswer(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	failures := 0
	w := &Watcher{probe: func(context.Context) error { return nil }, failed: func(error) { failures++ }}
	for i, step := range []struct {
		answer, want error
		failures     int
	}{
		{nil, nil, 0},
		{errBroken, errBroken, 1},
		{errBroken, errBroken, 1},
		{apierrors.NewResourceExpired("too old"), errBroken, 1},
		{nil, nil, 1},
		{&apierrors.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonGone}}, nil, 1},
		{errBroken, errBroken, 2},
		{nil, nil, 2},
	} {
		err := w.Do(ctx, func() error { return step.answer })
		if failures != step.failures || !errors.Is(err, step.answer) || !errors.Is(w.Err(), step.want) {
			t.Errorf("step %d: %d failures, returned %v, remembered %v", i, failures, err, w.Err())
		}
	}
	cancel()
	if err := w.Do(ctx, func() error { return errBroken }); w.Err() != nil {
		t.Errorf("after the caller has gone: returned %v, remembered %v", err, w.Err())
	}
}
