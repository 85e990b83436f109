// SPDX-License-Identifier: Apache-2.0

package ads

import (
	rpcstatus "google.golang.org/genproto/googleapis/rpc/status"
)

// maxOutstanding bounds what is remembered of a client that never answers.
const maxOutstanding = 32

// acks tracks what a subscription was sent and what the client said to it.
type acks struct {
	// pushed counts the answers handed to go-control-plane, done those that the
	// client has accepted or refused, by the number of the last one.
	pushed, done uint64
	outstanding  []outstanding

	sentVersion  string
	ackedVersion string
	nackVersion  string
	nackError    string
	nacks        int
}

// outstanding is a response that the client has not answered.
type outstanding struct {
	nonce, version string
	number         uint64
}

// sent records a response that is about to be sent.
func (a *acks) sent(nonce, version string) {
	number := a.done + 1
	if n := len(a.outstanding); n > 0 {
		number = a.outstanding[n-1].number + 1
	}
	if len(a.outstanding) == maxOutstanding {
		a.outstanding = append(a.outstanding[:0], a.outstanding[1:]...)
	}
	a.outstanding = append(a.outstanding, outstanding{nonce, version, number})
	a.sentVersion = version
}

// answered records the client's answer to the response with a nonce, and to
// those before it. Without a nonce, or with a stale one, it is no answer.
func (a *acks) answered(nonce string, problem *rpcstatus.Status) {
	for i, o := range a.outstanding {
		if o.nonce != nonce {
			continue
		}
		a.outstanding = append(a.outstanding[:0], a.outstanding[i+1:]...)
		a.done = o.number
		if problem != nil {
			a.nackVersion, a.nackError = o.version, problem.GetMessage()
			a.nacks++
			return
		}
		a.ackedVersion = o.version
		a.nackVersion, a.nackError = "", ""
		return
	}
}
