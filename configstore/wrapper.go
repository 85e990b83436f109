// SPDX-License-Identifier: Apache-2.0

package configstore

import "github.com/pilotkit/pilotkit/internal/wrapper"

// As returns an ability of a store: thing itself as a T, or else the first T among the stores that
// it wraps. T is an optional interface such as Watcher. A wrapper declares by one of the methods
//
//	Unwrap() configstore.ConfigStore
//	Unwrap() []any
//
// that callers may use the wrapped store directly; the package comment explains when wrappers do
// so. A nil thing has no abilities.
//
//	if w, ok := configstore.As[configstore.Watcher](cache); ok {
func As[T any](thing any) (ability T, ok bool) { return wrapper.As[T, ConfigStore](thing) }
