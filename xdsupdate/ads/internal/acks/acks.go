// SPDX-License-Identifier: Apache-2.0

// Package acks tracks the responses to a client and its ACKs and NACKs. A Tracker serves one
// subscription: Sent records a response, and Answer records the answer to it. The owner of a value
// guards it.
package acks

import (
	"slices"
	"strings"
	"time"

	"github.com/pilotkit/pilotkit/internal/limit"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/reference"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/resource"
)

// maxUnanswered is the number of unanswered responses after which a client is sent no more of them.
// Delta clients may send requests, and get responses, without answering; SotW clients have at most
// one unanswered response.
const maxUnanswered limit.Size = 32

// Tracker tracks the responses of a subscription and the client's answers.
type Tracker struct {
	// Unanswered are the responses that the client has not answered, in the order of sending.
	Unanswered []Response
	// Refused counts the rejected responses.
	Refused int
	// An epoch is the number of a push. Applied is the last epoch whose resources the client has
	// completely, Accepted the epoch of the last accepted response.
	Applied, Accepted uint64
	// SentVersion is the version of the last response, AckedVersion the version of the last
	// accepted response; both are "" before there is one.
	SentVersion, AckedVersion string
}

// Response is a response that the client has not answered.
type Response struct {
	// Nonce is a number that grows with each response to the client.
	Nonce, Version string
	// Epoch is the epoch whose resources the client has completely with this response, or 0 if
	// further responses follow.
	Epoch uint64
	// SentIn is the epoch when it was sent.
	SentIn uint64
	// PushedAt is when the push was requested that caused the response, or zero if no push did.
	PushedAt time.Time
	// Listed contains the resources that were new to the client, by name. Full is set for a response
	// with all resources of the client. Its answer covers resources beyond Listed.
	Listed []*resource.State
	Full   bool
	// Before is the client's snapshot before the response.
	Before *resource.Snapshot
	// IsPart means that it is one of several responses that are sent at once.
	IsPart bool
	// SentAt is when it was queued, Fresh the clusters in it that the client did not have, and
	// Overdue means that the late answer was reported.
	SentAt time.Time
	Fresh  reference.ClusterNames
	// Left are the clusters that routes in it have stopped leading to.
	Left    reference.Hashes
	Overdue bool
}

// Find returns a resource that was new to the client, or nil if no such resource has that name.
func (o *Response) Find(name string) *resource.State {
	i, found := slices.BinarySearchFunc(o.Listed, name, func(r *resource.State, name string) int { return strings.Compare(r.Name, name) })
	if !found {
		return nil
	}
	return o.Listed[i]
}

// TellsAbsence reports whether the response has an unreadable resource, whose NACK is expected. The
// resource stands for one that does not exist.
func (o *Response) TellsAbsence() bool {
	return len(o.Listed) == 1 && o.Listed[0].Marker == resource.Absent
}

// Sent adds a record of a response, which the caller fills in.
func (a *Tracker) Sent(version string) *Response {
	a.Unanswered = append(a.Unanswered, Response{})
	o := &a.Unanswered[len(a.Unanswered)-1]
	o.Version, a.SentVersion = version, version
	return o
}

// Moved resets the applied epochs, because the client is to get other resources in the same epoch.
func (a *Tracker) Moved() {
	a.Applied = 0
	for i := range a.Unanswered {
		a.Unanswered[i].Epoch = 0
	}
}

// Apply records that the client has the resources of a response, or rejects them for good.
func (a *Tracker) Apply(o *Response) { a.Applied = max(a.Applied, o.Epoch) }

// Full reports whether the next response has to wait for an answer: one of several responses that
// were sent at once is not answered, or too many are not.
func (a *Tracker) Full() bool {
	return len(a.Unanswered) >= maxUnanswered.Get() || slices.ContainsFunc(a.Unanswered, func(o Response) bool { return o.IsPart })
}

// Awaits reports whether a response with a resource is not answered.
func (a *Tracker) Awaits(name string) bool {
	return slices.ContainsFunc(a.Unanswered, func(o Response) bool { return o.Find(name) != nil })
}

// Answer records the client's answer to the response with a nonce, and to earlier ones, and copies
// the response to of. It reports false if the nonce is empty or stale.
func (a *Tracker) Answer(nonce string, refused bool, of *Response) bool {
	for i := range a.Unanswered {
		if o := &a.Unanswered[i]; nonce == "" || o.Nonce != nonce {
			continue
		}
		*of = a.Unanswered[i]
		a.Unanswered = slices.Delete(a.Unanswered, 0, i+1) // releases the snapshots
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
