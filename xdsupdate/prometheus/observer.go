// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	"errors"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/pilotkit/pilotkit/xdsupdate/ads"
)

// StreamOpened implements Observer: one more proxy is connected.
func (m *Metrics) StreamOpened(s ads.Stream) {
	m.connected[protocol(s)].Inc()
	m.opened[protocol(s)].Inc()
}

// StreamClosed implements Observer: one proxy less is connected.
func (m *Metrics) StreamClosed(s ads.Stream, err error) {
	m.connected[protocol(s)].Dec()
	m.closed[codeOf(err)].Inc()
	m.limited(err)
}

// StreamRefused implements Observer.
func (m *Metrics) StreamRefused(_ ads.Stream, err error) {
	m.refused[codeOf(err)].Inc()
	m.limited(err)
}

// limited counts a stream that exceeded a limit.
func (m *Metrics) limited(err error) {
	if status.Code(err) != codes.ResourceExhausted { // every LimitError has this status
		return
	}
	if exceeded, ok := errors.AsType[*ads.LimitError](err); ok {
		counter, known := m.limits[string(exceeded.Limit)]
		if !known {
			counter = m.otherLimit
		}
		counter.Inc()
	}
}

// codeOf returns the index in statusCodes of an error's status.
func codeOf(err error) int { return int(min(status.Code(err), codes.Code(knownCodes))) }

// Request implements Observer: a subscription, an ACK, or a NACK.
func (m *Metrics) Request(_ ads.Stream, r ads.RequestEvent) {
	t := m.typed(r.TypeURL)
	t.received.Add(float64(r.Bytes))
	switch {
	case r.Refused:
		t.nacks.Inc()
	case r.Nonce != "":
		t.acks.Inc()
	default:
		t.subscriptions.Inc()
	}
}

// Response implements Observer.
func (m *Metrics) Response(_ ads.Stream, r ads.ResponseEvent) {
	t := m.typed(r.TypeURL)
	t.responses.Inc()
	t.sentBytes.Add(float64(r.Bytes))
	t.sent.Add(float64(r.Resources))
	t.removed.Add(float64(r.Removed))
}

// Converged implements Observer.
func (m *Metrics) Converged(_ ads.Stream, typeURL string, after time.Duration) {
	m.typed(typeURL).convergence.Observe(after.Seconds())
}

// Overdue implements Observer.
func (m *Metrics) Overdue(_ ads.Stream, typeURL string, _ time.Duration) {
	m.typed(typeURL).overdue.Inc()
}

// Pushed implements Observer.
func (m *Metrics) Pushed(p ads.PushEvent) {
	kind := kindOf(p.Request)
	m.pushes[kind].Inc()
	m.debounce[kind].Observe(p.Waited.Seconds())
	m.pushed[kind].Observe(p.Took.Seconds())
	for reason, n := range p.Request.Reason {
		counter, known := m.reasons[string(reason)]
		if !known {
			counter = m.otherReason
		}
		counter.Add(float64(max(n, 0))) // a host may pass negative counts
	}
}

// Failed implements Observer.
func (m *Metrics) Failed(err error) { m.failures[causeOf(err)].Inc() }

// Panicked implements Observer.
func (m *Metrics) Panicked(p ads.PanicEvent) {
	counter, known := m.parts[p.In]
	if !known {
		counter = m.otherPart
	}
	counter.Add(float64(p.Times))
}

// typed returns the metrics of a type URL.
func (m *Metrics) typed(url string) *typeMetrics {
	if t, known := m.types[url]; known {
		return t
	}
	return m.otherType
}
