// SPDX-License-Identifier: Apache-2.0

package envoy

import "google.golang.org/protobuf/types/known/durationpb"

// maxSeconds is the longest duration that Envoy takes, 292 years: it refuses a resource
// over a longer one, and over one below zero.
const maxSeconds = 9223372035

// duration returns a copy of a duration that Envoy takes; nil stays nil.
func duration(d *durationpb.Duration) *durationpb.Duration {
	switch {
	case d == nil:
		return nil
	case d.AsDuration() < 0:
		return &durationpb.Duration{}
	case d.GetSeconds() > maxSeconds:
		return &durationpb.Duration{Seconds: maxSeconds}
	default:
		return durationpb.New(d.AsDuration())
	}
}
