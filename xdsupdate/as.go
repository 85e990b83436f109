// SPDX-License-Identifier: Apache-2.0

package xdsupdate

import "github.com/pilotkit/pilotkit/internal/wrapper"

// As returns thing, or the first value that it wraps, as a T. T is an optional interface such as
// EndpointDeltaUpdater or BatchUpdater. A wrapper has one of the methods
//
//	Unwrap() xdsupdate.XDSUpdater
//	Unwrap() []any
//
// to allow calls of T's methods to bypass it if it does not implement T. A wrapper that modifies or
// records calls must therefore have neither method, because EDSDeltaUpdate calls and updates of
// registries in this module would bypass it. A nil thing has no abilities.
func As[T any](thing any) (ability T, ok bool) { return wrapper.As[T, XDSUpdater](thing) }
