// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"slices"
	"strings"
	"time"

	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/reference"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/resource"
)

// maxOutstanding bounds what is remembered of a client that never answers. Delta
// clients may send requests, and be answered, without answering; SotW clients
// have one response outstanding at most.
const maxOutstanding = 32

// acks tracks what a subscription was sent and what the client said to it.
type acks struct {
	// pushed counts the responses; done is the number of the last one that the
	// client has accepted or refused, applied the last epoch of which it has
	// everything: see cache.epoch.
	pushed, done uint64
	applied      uint64
	// accepted is the epoch in which the last response that the client accepted was sent.
	accepted    uint64
	outstanding []outstanding

	sentVersion  string
	ackedVersion string
	nacks        int
}

// outstanding is a response that the client has not answered.
type outstanding struct {
	nonce, version string
	number         uint64
	// epoch: with this response the client has everything of that epoch; 0: there
	// is more to come.
	epoch uint64
	// at is the epoch in which it was sent.
	at uint64
	// since is that of the selection.
	since time.Time
	// listed are the resources that were new to the client, and full: it was sent
	// everything that it has, so that they are not all that it answers.
	listed []*resource.State
	full   bool
	// before is what the client had before.
	before *resource.Snapshot
	// part: it is one of several responses that are sent at once.
	part bool
	// sentAt is when it was queued, fresh the clusters in it that the client did not have,
	// overdue whether it was reported that the answer is late.
	sentAt time.Time
	fresh  reference.ClusterNames
	// left are the clusters that routes in it do not lead to any more: see leaving.
	left    reference.Hashes
	overdue bool
}

// find returns a resource that was new to the client; nil: there was none of that name.
func (o *outstanding) find(name string) *resource.State {
	i, found := slices.BinarySearchFunc(o.listed, name, func(r *resource.State, name string) int { return strings.Compare(r.Name, name) })
	if !found {
		return nil
	}
	return o.listed[i]
}

// sent returns a record of one more response, which the caller fills in.
func (a *acks) sent(version string) *outstanding {
	a.pushed++
	if len(a.outstanding) == maxOutstanding {
		a.outstanding = append(a.outstanding[:0], a.outstanding[1:]...)
	}
	a.outstanding = append(a.outstanding, outstanding{})
	o := &a.outstanding[len(a.outstanding)-1]
	o.version, o.number = version, a.pushed
	a.sentVersion = version
	return o
}

// moved forgets what the client has applied: it is to have something else now, in the
// same epoch.
func (a *acks) moved() {
	a.applied = 0
	for i := range a.outstanding {
		a.outstanding[i].epoch = 0
	}
}

// apply notes that the client has what a response brings, or refuses it for good.
func (a *acks) apply(o *outstanding) { a.applied = max(a.applied, o.epoch) }

// awaitsParts reports whether one of several responses that were sent at once is not
// answered.
func (a *acks) awaitsParts() bool {
	for i := range a.outstanding {
		if a.outstanding[i].part {
			return true
		}
	}
	return false
}

// awaits reports whether a response with a resource is not answered.
func (a *acks) awaits(name string) bool {
	return slices.ContainsFunc(a.outstanding, func(o outstanding) bool {
		return slices.ContainsFunc(o.listed, func(r *resource.State) bool { return r.Name == name })
	})
}

// last returns the nonce of the last response, "" if there was none that is not
// answered.
func (a *acks) last() string {
	if len(a.outstanding) == 0 {
		return ""
	}
	return a.outstanding[len(a.outstanding)-1].nonce
}

// answered records the client's answer to the response with a nonce, and to
// those before it, and sets that response. Without a nonce, or with a stale
// one, it is no answer.
func (a *acks) answered(nonce string, refused bool, of *outstanding) bool {
	for i := range a.outstanding {
		if a.outstanding[i].nonce != nonce || nonce == "" {
			continue
		}
		*of = a.outstanding[i]
		a.outstanding = slices.Delete(a.outstanding, 0, i+1) // with what it holds on to
		a.done = of.number
		if refused && !of.tellsAbsence() {
			a.nacks++
		} else {
			a.ackedVersion, a.accepted = of.version, of.at
			a.apply(of)
		}
		return true
	}
	return false
}
