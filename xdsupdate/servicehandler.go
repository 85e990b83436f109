// SPDX-License-Identifier: Apache-2.0

package xdsupdate

import "github.com/pilotkit/pilotkit/registry"

// ServiceHandler returns a handler of the service events of a registry that asks
// for a full push of the service. An update asks for none if the services are
// Equal. A nil updater is Discard.
//
// A registry that has an updater asks for the pushes of its services itself, before its
// handlers are called. Asked for twice, a change is pushed once: the debounce merges the
// requests.
func ServiceHandler(updater XDSUpdater) registry.ServiceHandler {
	updater = Multi(updater)
	return func(prev, curr *registry.Service, event registry.Event) {
		if event == registry.EventUpdate && prev.Equal(curr) {
			return
		}
		keys := KeySet(keyOf(curr))
		if event == registry.EventUpdate && prev != nil {
			keys[keyOf(prev)] = struct{}{} // another one if the service was renamed
		}
		updater.ConfigUpdate(&PushRequest{
			Full: true, ConfigsUpdated: keys, Reason: map[TriggerReason]int{ReasonService: 1},
		})
	}
}
