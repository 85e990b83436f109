// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/hostname"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/mesh"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/objects"
)

// difference contains the changes of a push.
type difference struct {
	before, after *state
	// services are the hosts, in lower case, with changed services. endpoints are the hosts that
	// have only changed endpoints.
	services, endpoints []registry.Hostname
	objects             []objects.Change
	// clients are the places that clients have asked about, and places returns the places of workloads
	// with changes.
	clients *places
	places  func() map[workloadPlace]struct{}
}

// difference returns the changes of a push relative to the old state. It leaves after unset.
func (p *Policies) difference(push *ads.PushContext, old *state) *difference {
	d := &difference{before: old, clients: &p.places}
	d.places = sync.OnceValue(d.changedPlaces)
	for _, changed := range push.ChangedHosts() {
		if changed.EndpointsOnly {
			d.endpoints = append(d.endpoints, hostname.Lower(changed.Hostname))
		} else {
			d.services = append(d.services, hostname.Lower(changed.Hostname))
		}
	}
	changed, otherKeys := p.takeAll(push, old)
	for _, key := range slices.SortedFunc(maps.Keys(changed), compareKeys) {
		before, _ := old.Objects.Get(key)
		now := changed[key]
		if _, rekeyed := otherKeys[key]; objects.SameConfig(objects.ConfigIn(before), now) && (!rekeyed || now == nil) {
			continue
		}
		p.settings.keys.follow(key, objects.ConfigIn(before), now)
		if after := objects.NewObject(now, &p.settings.Settings); before != nil || after != nil {
			d.objects = append(d.objects, objects.Change{Key: key, Before: before, After: after})
		}
	}
	return d
}

// takeAll returns the changed configs. They include otherKeys, the configs with changed token keys.
func (p *Policies) takeAll(push *ads.PushContext, old *state) (changed map[configstore.ConfigKey]*configstore.Config, otherKeys map[configstore.ConfigKey]struct{}) {
	changed, otherKeys = p.take(push), p.settings.keys.take()
	if changed == nil {
		changed = make(map[configstore.ConfigKey]*configstore.Config)
	}
	for key := range otherKeys {
		if _, also := changed[key]; !also {
			o, _ := old.Objects.Get(key)
			changed[key] = objects.ConfigIn(o)
		}
	}
	return changed, otherKeys
}

// now yields the changed objects as they are now.
func (d *difference) now() iter.Seq2[configstore.ConfigKey, objects.Object] {
	return func(yield func(configstore.ConfigKey, objects.Object) bool) {
		for _, o := range d.objects {
			if !yield(o.Key, o.After) {
				return
			}
		}
	}
}

// endpointsOnly reports whether policies and services are unchanged.
func (d *difference) endpointsOnly() bool { return len(d.services)+len(d.objects) == 0 }

func compareKeys(a, b configstore.ConfigKey) int {
	return strings.Compare(a.Kind.Kind+"/"+a.Namespace+"/"+a.Name, b.Kind.Kind+"/"+b.Namespace+"/"+b.Name)
}

// virtualServices returns the old and new revisions of the changed VirtualServices.
func (d *difference) virtualServices() []*objects.VirtualService {
	var out []*objects.VirtualService
	for _, o := range d.objects {
		out = append(out, objects.Of[*objects.VirtualService](o.Revisions())...)
	}
	return out
}

// changedPlaces returns the places of workloads in a difference: those of changed endpoints, and of
// all endpoints of changed services.
func (d *difference) changedPlaces() map[workloadPlace]struct{} {
	out := make(map[workloadPlace]struct{})
	add := func(svc *registry.Service, endpoints iter.Seq[*registry.Endpoint]) {
		for e := range endpoints {
			for _, a := range e.Addresses {
				out[workloadPlace{svc.Attributes.Namespace, mesh.CanonicalAddress(a)}] = struct{}{}
			}
		}
	}
	for _, host := range slices.Concat(d.endpoints, d.services) {
		for _, svc := range slices.Concat(d.before.world.Named(host), d.after.world.Named(host)) {
			before, after := d.before.world.Endpoints(svc), d.after.world.Endpoints(svc)
			add(svc, slices.Values(after.ChangesSince(before)))
			if slices.Contains(d.services, host) {
				add(svc, before.All())
				add(svc, after.All())
			}
		}
	}
	return out
}
