// SPDX-License-Identifier: Apache-2.0

package debug

import (
	"time"

	"github.com/pilotkit/pilotkit/xdsupdate"
)

// queuePage is the state of the queue of push requests.
type queuePage struct {
	// Running reports whether the server runs. Requests are pushed only while it runs.
	Running bool      `json:"running"`
	Pushing time.Time `json:"pushing_since,omitzero"`
	Retry   time.Time `json:"retry,omitzero"`
	Waiting []laneRow `json:"waiting"`
	Pushes  uint64    `json:"pushes"`
	Failed  uint64    `json:"failed"`
	Last    *lastPush `json:"last,omitempty"`
	// The debounce settings, as durations in Go's notation.
	DebounceAfter    string `json:"debounce_after"`
	DebounceMax      string `json:"debounce_max"`
	EndpointInterval string `json:"endpoint_interval"`
}

// laneRow is the pending request of one lane: full requests, or requests for endpoints only.
type laneRow struct {
	Name       string    `json:"name"`
	Requests   uint64    `json:"requests"`
	Everything bool      `json:"everything,omitempty"`
	Keys       int       `json:"keys"`
	Since      time.Time `json:"since,omitzero"`
	Due        time.Time `json:"due,omitzero"`
}

type lastPush struct {
	Full       bool                            `json:"full"`
	Everything bool                            `json:"everything,omitempty"`
	Keys       int                             `json:"keys"`
	Reason     map[xdsupdate.TriggerReason]int `json:"reason,omitempty"`
	Ended      time.Time                       `json:"ended"`
	Took       time.Duration                   `json:"took_ns"`
	Failed     bool                            `json:"failed,omitempty"`
}

func (h *handler) queue(*query) (any, error) {
	pusher, ok := h.pusher()
	if !ok {
		return nil, notFound("the server has no queue")
	}
	s := pusher.State()
	out := &queuePage{
		Running: s.Running, Pushing: s.Pushing, Retry: s.Retry, Pushes: s.Pushes, Failed: s.Failed,
		Waiting:       []laneRow{laneOf("full", s.Full), laneOf("endpoints only", s.Endpoints)},
		DebounceAfter: s.DebounceAfter.String(), DebounceMax: s.DebounceMax.String(), EndpointInterval: s.EndpointInterval.String(),
	}
	if s.Pushes > 0 {
		l := s.Last
		out.Last = &lastPush{l.Full, l.Everything, l.Keys, l.Reason, l.Ended, l.Took, l.Failed}
	}
	return out, nil
}

func laneOf(name string, w xdsupdate.WaitingRequests) laneRow {
	return laneRow{name, w.Requests, w.Everything, w.Keys, w.Since, w.Due}
}
