// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"maps"
	"slices"
	"strings"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// everything asks to compare all there is with the discovery.
func everything() *xdsupdate.PushRequest {
	return &xdsupdate.PushRequest{Full: true, Forced: true}
}

// push makes the state of what a request is about anew and publishes it.
func (s *Server) push(req *xdsupdate.PushRequest) {
	s.building.Lock()
	defer s.building.Unlock()
	if !s.built {
		s.built = true
		req = everything()
	}
	s.rebuild(req, s.hostsOf(req))
}

// The functions below are called with building held. Only they write the table,
// so that they may read it without its lock.

// allHosts returns the names of all hosts that are or were there.
func (s *Server) allHosts() map[registry.Hostname]struct{} {
	out := make(map[registry.Hostname]struct{})
	for name := range s.cache.table.hosts {
		out[name] = struct{}{}
	}
	for _, svc := range s.discovery.Services() {
		out[svc.Hostname] = struct{}{}
	}
	return out
}

// hostsOf returns the names of the hosts that a request is about.
func (s *Server) hostsOf(req *xdsupdate.PushRequest) map[registry.Hostname]struct{} {
	if req.Forced || len(req.ConfigsUpdated) == 0 {
		return s.allHosts()
	}
	out := make(map[registry.Hostname]struct{}, len(req.ConfigsUpdated))
	for key := range req.ConfigsUpdated {
		if xdsupdate.IsServiceKey(key) {
			out[registry.Hostname(key.Name)] = struct{}{}
		}
	}
	return out
}

// rebuild makes the state of some hosts anew and publishes it.
func (s *Server) rebuild(req *xdsupdate.PushRequest, names map[registry.Hostname]struct{}) {
	ch := change{
		hosts: make(map[registry.Hostname]*host, len(names)),
		names: make(map[resourceName]struct{}),
	}
	full := req.Full || req.Forced || len(req.ConfigsUpdated) == 0
	var services []*registry.Service
	if full {
		services = s.discovery.Services()
	}
	for name := range names {
		before := s.cache.table.hosts[name]
		var after *host
		if full {
			after = newHost(before, servicesOf(services, name), s.EndpointIndex().Service)
		} else {
			after = before.refreshed(s.EndpointIndex().Service)
		}
		if before == after {
			continue
		}
		ch.hosts[name] = after
		maps.Copy(ch.names, affected(before, after, !full))
	}
	ch.overlays = s.generate(s.cache.readyViews(), req)
	maps.Copy(ch.overlays, s.generate(s.cache.takeFresh(), everything()))
	s.cache.publish(ch, s.report)
}

// servicesOf returns the services of a host, from the sorted list of all.
func servicesOf(services []*registry.Service, name registry.Hostname) []*registry.Service {
	from, _ := slices.BinarySearchFunc(services, name, func(s *registry.Service, name registry.Hostname) int {
		return strings.Compare(string(s.Hostname), string(name))
	})
	to := from
	for to < len(services) && services[to].Hostname == name {
		to++
	}
	return services[from:to]
}

// greet asks the generators for views that are new. The caller does not hold
// building.
func (s *Server) greet() {
	s.building.Lock()
	defer s.building.Unlock()
	if !s.built {
		return // the first push greets
	}
	fresh := s.cache.takeFresh()
	if len(fresh) == 0 {
		return
	}
	s.cache.publish(change{overlays: s.generate(fresh, everything())}, s.report)
}

// generate asks all generators for some views.
func (s *Server) generate(views []*view, req *xdsupdate.PushRequest) map[*view]map[string]map[string]*resource {
	out := make(map[*view]map[string]map[string]*resource, len(views))
	for _, v := range views {
		made := make(map[string]map[string]*resource)
		for _, typeURL := range slices.Sorted(maps.Keys(s.generators)) {
			if resources, changed := s.generators[typeURL].Generate(v.View, req); changed {
				made[typeURL] = overlay(typeURL, resources)
				encodeAll(slices.Collect(maps.Values(made[typeURL])), s.report)
			}
		}
		out[v] = made
	}
	return out
}
