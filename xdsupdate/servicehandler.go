// SPDX-License-Identifier: Apache-2.0

package xdsupdate

import (
	"reflect"
	"slices"

	"github.com/pilotkit/pilotkit/registry"
)

// ServicePusher is the optional ability of a registry.Controller to ask an updater
// itself for the pushes of its services. Find it with registry.As. ServiceHandler
// looks for it, so that a change is pushed once, however registries, updaters and
// handlers are wired.
type ServicePusher interface {
	// PushesTo returns the updater that the registry asks for the push of a change,
	// before its handlers are notified of it; nil if there is none. A handler calls
	// it with the curr that it got, before it returns: the answers of a registry that
	// consists of others, such as aggregate.Controller, are about the change that it
	// is notifying of.
	PushesTo(service *registry.Service) XDSUpdater
}

// ServiceHandler returns a handler of the service events of a registry that asks
// for a full push of the service. An update asks for none if the services are
// Equal. Changes for which the registry, a ServicePusher, asks the updater itself
// are left to it, so that there is one push for each change. Of the parts of a
// Multi each is asked by one of the two. A nil registry is one that asks no updater.
//
// What an updater passes its ConfigUpdate on to is known of Multi, of wrappers with
// an Unwrap method (As), and of those with a method
//
//	PassesTo() []XDSUpdater
func ServiceHandler(updater XDSUpdater, from registry.Controller) registry.ServiceHandler {
	pusher, _ := registry.As[ServicePusher](from)
	targets := partsOf(updater)
	return func(prev, curr *registry.Service, event registry.Event) {
		if event == registry.EventUpdate && prev.Equal(curr) {
			return
		}
		var asked []XDSUpdater
		if pusher != nil {
			asked = ends(pusher.PushesTo(curr))
		}
		keys := KeySet(keyOf(curr))
		if event == registry.EventUpdate && prev != nil {
			keys[keyOf(prev)] = struct{}{} // another one if the service was renamed
		}
		each(targets, func(target XDSUpdater) {
			if !reached(target, asked) {
				target.ConfigUpdate(&PushRequest{
					Full: true, ConfigsUpdated: keys, Reason: map[TriggerReason]int{ReasonService: 1},
				})
			}
		})
	}
}

// partsOf returns the parts of a Multi, or the updater itself.
func partsOf(updater XDSUpdater) []XDSUpdater {
	m, ok := updater.(interface{ parts() []XDSUpdater })
	if !ok {
		return []XDSUpdater{updater}
	}
	var out []XDSUpdater
	for _, part := range m.parts() {
		out = append(out, partsOf(part)...)
	}
	return out
}

// ends returns the updaters that a ConfigUpdate reaches in the end.
func ends(updater XDSUpdater) []XDSUpdater {
	var next []XDSUpdater
	switch w := updater.(type) {
	case nil:
		return nil
	case interface{ PassesTo() []XDSUpdater }:
		next = w.PassesTo()
	case interface{ Unwrap() XDSUpdater }:
		next = []XDSUpdater{w.Unwrap()}
	default:
		return []XDSUpdater{updater}
	}
	var out []XDSUpdater
	for _, u := range next {
		out = append(out, ends(u)...)
	}
	return out
}

// reached reports whether all that a target passes to is among the ends of what
// was asked.
func reached(target XDSUpdater, asked []XDSUpdater) bool {
	return len(asked) > 0 && !slices.ContainsFunc(ends(target), func(end XDSUpdater) bool {
		return !slices.ContainsFunc(asked, func(u XDSUpdater) bool {
			return reflect.ValueOf(u).Comparable() && reflect.ValueOf(end).Comparable() && u == end
		})
	})
}
