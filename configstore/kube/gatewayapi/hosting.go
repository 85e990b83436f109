// SPDX-License-Identifier: Apache-2.0

package gatewayapi

import (
	"context"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/pilotkit/pilotkit/internal/guard"
)

const (
	// firstHostingRetry and lastHostingRetry are the first and the maximum delay before a failed
	// call is retried. The delay doubles with each failure.
	firstHostingRetry = time.Second
	lastHostingRetry  = time.Minute
)

// hosting calls an Infrastructure, with one call at a time per Gateway.
type hosting struct {
	infrastructure Infrastructure
	logger         *slog.Logger
	// report is called with the infrastructure of a Gateway, or nil after its removal.
	report func(Key, *Provided)

	wake chan struct{}

	mu       sync.Mutex
	gateways map[Key]*hosted
}

// hosted is one Gateway.
type hosted struct {
	// desired is nil if the infrastructure is to be removed.
	desired *Desired
	// due is set while a call is pending, and busy during a call.
	due, busy bool
	// failures counts the failed calls since the last success.
	failures int
	retry    *time.Timer // nil unless a retry is scheduled
}

func newHosting(i Infrastructure, logger *slog.Logger, report func(Key, *Provided)) *hosting {
	return &hosting{infrastructure: i, logger: logger, report: report, wake: make(chan struct{}, 1), gateways: map[Key]*hosted{}}
}

// want sets the requirements of a Gateway; nil removes its infrastructure.
func (h *hosting) want(key Key, desired *Desired) {
	h.mu.Lock()
	g := h.gateways[key]
	if g == nil {
		if desired == nil {
			h.mu.Unlock()
			return
		}
		g = &hosted{}
		h.gateways[key] = g
	} else if reflect.DeepEqual(g.desired, desired) {
		h.mu.Unlock()
		return
	}
	g.desired, g.due, g.failures = desired, true, 0
	h.mu.Unlock()
	h.signal()
}

// again causes another call of Ensure.
func (h *hosting) again(key Key) {
	h.mu.Lock()
	if g := h.gateways[key]; g != nil {
		g.due = true
	}
	h.mu.Unlock()
	h.signal()
}

func (h *hosting) signal() {
	select {
	case h.wake <- struct{}{}:
	default: // A wake-up is pending already.
	}
}

// run makes calls until ctx ends, and returns after the calls in progress.
func (h *hosting) run(ctx context.Context) {
	var calls sync.WaitGroup
	defer h.stopTimers()
	defer calls.Wait()
	for {
		for _, key := range h.take() {
			calls.Go(func() { h.call(ctx, key) })
		}
		select {
		case <-h.wake:
		case <-ctx.Done():
			return
		}
	}
}

// take returns the Gateways with a pending call, and marks them busy.
func (h *hosting) take() []Key {
	h.mu.Lock()
	defer h.mu.Unlock()
	var out []Key
	for _, key := range slices.SortedFunc(maps.Keys(h.gateways), Key.Compare) {
		if g := h.gateways[key]; g.due && !g.busy {
			g.due, g.busy = false, true
			g.stopTimer()
			out = append(out, key)
		}
	}
	return out
}

// call makes the call for one Gateway, and reports its result.
func (h *hosting) call(ctx context.Context, key Key) {
	h.mu.Lock()
	desired := h.gateways[key].desired
	h.mu.Unlock()
	var provided *Provided
	var err error
	p := guard.Call(func() {
		if desired == nil {
			err = h.infrastructure.Remove(ctx, key)
			return
		}
		var now Provided
		if now, err = h.infrastructure.Ensure(ctx, *desired); err == nil {
			provided = &now
		}
	})
	if p.Log(h.logger, "infrastructure", slog.String("gateway", key.String())); p != nil {
		err = p
	}
	if ctx.Err() != nil {
		return // stopped
	}
	if err != nil {
		h.logger.Warn("infrastructure of a Gateway failed", slog.String("gateway", key.String()), slog.Any("error", err))
		provided = &Provided{Reason: gatewayv1.GatewayReasonNoResources, Message: err.Error()}
	}
	if desired == nil {
		provided = nil
	}
	h.report(key, provided)
	h.finish(key, desired, err != nil)
	h.signal()
}

// finish ends a call, and schedules a retry if it has failed.
func (h *hosting) finish(key Key, desired *Desired, failed bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	g := h.gateways[key]
	g.busy = false
	switch {
	case g.due:
	case failed:
		wait := min(firstHostingRetry<<min(g.failures, 10), lastHostingRetry)
		g.failures++
		g.retry = time.AfterFunc(wait, func() { h.again(key) })
	case desired == nil:
		delete(h.gateways, key)
	default:
		g.failures = 0
	}
}

func (g *hosted) stopTimer() {
	if g.retry != nil {
		g.retry.Stop()
		g.retry = nil
	}
}

func (h *hosting) stopTimers() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, g := range h.gateways {
		g.stopTimer()
	}
}
