// SPDX-License-Identifier: Apache-2.0

package xdsupdate

// Collect merges requests as a Pusher does: part by part, then the parts.
func Collect(parts ...[]*PushRequest) *PushRequest {
	var all pending
	for _, part := range parts {
		var p pending
		for _, r := range part {
			p.add(r)
		}
		all.add(p.request())
	}
	return all.take()
}
