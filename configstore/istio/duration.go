// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
)

// maxSeconds is where the nanoseconds of a duration exceed 64 bits: Envoy refuses the
// whole route configuration or cluster over one as long.
const maxSeconds = 9223372036

// checkDuration refuses durations that Envoy cannot keep to: less than a
// millisecond, with a fraction of one, or too long to count. Nil is fine: most durations have a
// default.
func checkDuration(at *field, d *durationpb.Duration) {
	if d == nil || !checkDurationValid(at, d) {
		return
	}
	switch length := d.AsDuration(); {
	case d.Seconds >= maxSeconds:
		at.refuse("must be less than %ds (Envoy: Duration out-of-range), is %ds", maxSeconds, d.Seconds)
	case length < time.Millisecond:
		at.refuse("must be at least 1ms, is %s", length)
	case length%time.Millisecond != 0:
		at.refuse("must be whole milliseconds, is %s", length)
	}
}

// checkDurationOrZero is checkDuration where zero has a meaning of its own.
func checkDurationOrZero(at *field, d *durationpb.Duration) {
	if d != nil && (d.Seconds != 0 || d.Nanos != 0) {
		checkDuration(at, d)
	}
}

// checkRequiredDuration is checkDuration for durations without a default.
func checkRequiredDuration(at *field, d *durationpb.Duration) {
	if d == nil {
		at.refuse("is required")
		return
	}
	checkDuration(at, d)
}

func checkDurationValid(at *field, d *durationpb.Duration) bool {
	if d.CheckValid() != nil {
		at.refuse("must be a duration, is %ds %dns", d.Seconds, d.Nanos)
		return false
	}
	return true
}
