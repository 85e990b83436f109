// SPDX-License-Identifier: Apache-2.0

package xdsbuild

import "google.golang.org/protobuf/types/known/durationpb"

// maxSeconds is the longest duration that Envoy accepts, 292 years. Envoy rejects a resource with a
// longer or a negative one.
const maxSeconds = 9223372035

// duration returns a copy of a duration, limited to the range that Envoy accepts. It returns nil
// for nil.
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
