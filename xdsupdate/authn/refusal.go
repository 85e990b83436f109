// SPDX-License-Identifier: Apache-2.0

package authn

import (
	"go.uber.org/atomic"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Cause is the reason why a client is rejected: see "Refusals" in the package comment.
type Cause string

// The causes.
const (
	CauseNoIdentity     Cause = "no_identity"
	CauseCertificate    Cause = "certificate"
	CauseTrustDomain    Cause = "trust_domain"
	CauseNamespace      Cause = "namespace"
	CauseServiceAccount Cause = "service_account"
	CauseToken          Cause = "token"
	CauseTokenUnchecked Cause = "token_unchecked"
)

func causes() []Cause {
	return []Cause{
		CauseNoIdentity, CauseCertificate, CauseTrustDomain, CauseNamespace, CauseServiceAccount, CauseToken, CauseTokenUnchecked,
	}
}

// code returns the status code of a cause.
func (c Cause) code() codes.Code {
	switch c {
	case CauseTrustDomain, CauseNamespace, CauseServiceAccount:
		return codes.PermissionDenied
	case CauseTokenUnchecked:
		return codes.Unavailable
	default:
		return codes.Unauthenticated
	}
}

// refusals counts refusals by cause. newRefusals creates all keys; the set of keys never changes.
type refusals map[Cause]*atomic.Uint64

func newRefusals() refusals {
	r := make(refusals)
	for _, c := range causes() {
		r[c] = atomic.NewUint64(0)
	}
	return r
}

// refuse counts a refusal and returns the status for the client.
func (r refusals) refuse(cause Cause, format string, args ...any) error {
	r[cause].Inc()
	return status.Errorf(cause.code(), format, args...)
}

// Refusals returns the number of rejected calls by Cause. It may be called at any time; the map
// belongs to the caller.
func (a *Authenticator) Refusals() map[Cause]uint64 {
	out := make(map[Cause]uint64, len(a.refused))
	for cause, n := range a.refused {
		out[cause] = n.Load()
	}
	return out
}
