// SPDX-License-Identifier: Apache-2.0

package xdsupdate

import "strconv"

// PushType is the effect of a change of endpoints on proxies. A larger value includes the smaller
// ones.
type PushType int

const (
	// NoPush means that proxies see no difference.
	NoPush PushType = iota
	// IncrementalPush means that the endpoints of the service have to be pushed.
	IncrementalPush
	// FullPush means that the service itself has to be pushed, because it is new
	// or because the set of its service accounts, which clusters carry, changed.
	FullPush
)

// String returns "NoPush", "IncrementalPush" or "FullPush".
func (t PushType) String() string {
	switch t {
	case NoPush:
		return "NoPush"
	case IncrementalPush:
		return "IncrementalPush"
	case FullPush:
		return "FullPush"
	default:
		return "PushType(" + strconv.Itoa(int(t)) + ")"
	}
}
