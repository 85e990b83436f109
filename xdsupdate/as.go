// SPDX-License-Identifier: Apache-2.0

package xdsupdate

import "github.com/pilotkit/pilotkit/internal/wrapper"

// As returns an ability of an updater: thing itself as a T, or else the first T of those
// that it wraps. T is an optional interface such as EndpointDeltaUpdater or BatchUpdater.
// A wrapper declares by one of the methods
//
//	Unwrap() xdsupdate.XDSUpdater
//	Unwrap() []any
//
// that calls of abilities that it lacks may go to what it wraps, past itself. An updater
// that changes or records calls about shards therefore has neither: calls of
// EDSDeltaUpdate, and all that an Owner makes of such calls, would escape it. It has
// UpdateBatch. A nil thing has no abilities.
func As[T any](thing any) (ability T, ok bool) { return wrapper.As[T, XDSUpdater](thing) }
