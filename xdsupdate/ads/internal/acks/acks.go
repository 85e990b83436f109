// SPDX-License-Identifier: Apache-2.0

// Package acks keeps what clients have said to the responses that they were sent: ACKs, NACKs, and
// what of it is not answered yet. Its values are guarded by whoever has them.
package acks

import (
	"slices"
	"strings"
	"time"

	"github.com/pilotkit/pilotkit/internal/limit"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/reference"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/resource"
)

// maxUnanswered is how many responses a client may leave unanswered until it is sent no more of them. Delta clients may send
// requests, and be answered, without answering; SotW clients have one response unanswered at most.
const maxUnanswered limit.Size = 32

// Tracker tracks what a subscription was sent and what the client said to it.
type Tracker struct {
	// Unanswered are the responses that the client has not answered, in their order.
	Unanswered []Response
	// Pushed counts the responses, Refused those that the client has refused.
	Pushed  uint64
	Refused int
	// An epoch is the number of a push. Applied is the last one of which the client has
	// everything, Accepted that in which the last response was sent that it has accepted.
	Applied, Accepted uint64
	// SentVersion is the version of the last response, AckedVersion that of the last one that
	// the client has accepted; "": there is none.
	SentVersion, AckedVersion string
}

// Response is a response that the client has not answered.
type Response struct {
	// Nonce is a number that grows with each response to the client.
	Nonce, Version string
	// Epoch: with this response the client has everything of that epoch; 0: there
	// is more to come.
	Epoch uint64
	// SentIn is the epoch in which it was sent.
	SentIn uint64
	// PushedAt is when the push was asked for that has made what is in it; zero: none has.
	PushedAt time.Time
	// Listed are the resources that were new to the client, by name, and Full: it was sent
	// everything that it has, so that they are not all that it answers.
	Listed []*resource.State
	Full   bool
	// Before is what the client had before.
	Before *resource.Snapshot
	// IsPart: it is one of several responses that are sent at once.
	IsPart bool
	// SentAt is when it was queued, Fresh the clusters in it that the client did not have,
	// Overdue whether it was reported that the answer is late.
	SentAt time.Time
	Fresh  reference.ClusterNames
	// Left are the clusters that routes in it do not lead to any more.
	Left    reference.Hashes
	Overdue bool
}

// Find returns a resource that was new to the client; nil: there was none of that name.
func (o *Response) Find(name string) *resource.State {
	i, found := slices.BinarySearchFunc(o.Listed, name, func(r *resource.State, name string) int { return strings.Compare(r.Name, name) })
	if !found {
		return nil
	}
	return o.Listed[i]
}

// TellsAbsence reports whether the response was sent to be refused, which says that there is
// no resource.
func (o *Response) TellsAbsence() bool {
	return len(o.Listed) == 1 && o.Listed[0].Marker == resource.Absent
}

// Sent returns a record of one more response, which the caller fills in.
func (a *Tracker) Sent(version string) *Response {
	a.Pushed++
	a.Unanswered = append(a.Unanswered, Response{})
	o := &a.Unanswered[len(a.Unanswered)-1]
	o.Version, a.SentVersion = version, version
	return o
}

// Moved forgets what the client has applied: it is to have something else now, in the
// same epoch.
func (a *Tracker) Moved() {
	a.Applied = 0
	for i := range a.Unanswered {
		a.Unanswered[i].Epoch = 0
	}
}

// Apply notes that the client has what a response brings, or refuses it for good.
func (a *Tracker) Apply(o *Response) { a.Applied = max(a.Applied, o.Epoch) }

// Full reports whether no response is to be sent before the client answers: one of several that were sent at once is not
// answered, or too many are not.
func (a *Tracker) Full() bool { return len(a.Unanswered) >= maxUnanswered.Get() || a.AwaitsParts() }

// AwaitsParts reports whether one of several responses that were sent at once is not
// answered.
func (a *Tracker) AwaitsParts() bool {
	for i := range a.Unanswered {
		if a.Unanswered[i].IsPart {
			return true
		}
	}
	return false
}

// Awaits reports whether a response with a resource is not answered.
func (a *Tracker) Awaits(name string) bool {
	return slices.ContainsFunc(a.Unanswered, func(o Response) bool {
		return slices.ContainsFunc(o.Listed, func(r *resource.State) bool { return r.Name == name })
	})
}

// Answer records the client's answer to the response with a nonce, and to
// those before it, and sets that response. Without a nonce, or with a stale
// one, it is no answer.
func (a *Tracker) Answer(nonce string, refused bool, of *Response) bool {
	for i := range a.Unanswered {
		if o := &a.Unanswered[i]; nonce == "" || o.Nonce != nonce {
			continue
		}
		*of = a.Unanswered[i]
		a.Unanswered = slices.Delete(a.Unanswered, 0, i+1) // with what it holds on to
		if refused && !of.TellsAbsence() {
			a.Refused++
		} else {
			a.AckedVersion, a.Accepted = of.Version, of.SentIn
			a.Apply(of)
		}
		return true
	}
	return false
}
