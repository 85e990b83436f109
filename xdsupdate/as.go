// SPDX-License-Identifier: Apache-2.0

package xdsupdate

// As returns the first updater that has an ability, of the updater itself and
// those that it wraps. T is an optional interface such as EndpointDeltaUpdater,
// ShardClaimer or BatchUpdater.
//
// An updater that wraps another one either implements abilities itself, or has a
// method
//
//	Unwrap() XDSUpdater
//
// which says that calls of abilities that it lacks may go to the wrapped updater,
// past itself. An updater that changes or records calls of EDSUpdate therefore
// has no Unwrap: calls of EDSDeltaUpdate would escape it. It has UpdateBatch.
func As[T any](updater XDSUpdater) (T, bool) {
	for updater != nil {
		if t, ok := updater.(T); ok {
			return t, true
		}
		w, ok := updater.(interface{ Unwrap() XDSUpdater })
		if !ok {
			break
		}
		updater = w.Unwrap()
	}
	var none T
	return none, false
}
