// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"slices"
	"strings"
	"time"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// everything asks to compare all there is with the discovery.
func everything() *xdsupdate.PushRequest {
	return &xdsupdate.PushRequest{Full: true, Forced: true}
}

// push makes the state of what a request is about anew and publishes it.
func (s *Server) push(req *xdsupdate.PushRequest) {
	begun := time.Now()
	s.building.Lock()
	if !s.built {
		s.built = true
		start := req.Start
		req = everything()
		req.Start = start
	}
	s.rebuild(req, begun)
	s.building.Unlock()
	if s.observer != nil {
		s.observer.Pushed(PushEvent{Request: req, Waited: waited(req, begun), Took: time.Since(begun)})
	}
}

func waited(req *xdsupdate.PushRequest, now time.Time) time.Duration {
	if req.Start.IsZero() {
		return 0
	}
	return max(0, now.Sub(req.Start))
}

// The functions below are called with building held. Only they replace the table,
// so that they may read it without the cache's lock.

// rebuild makes the state of some hosts anew and publishes it.
func (s *Server) rebuild(req *xdsupdate.PushRequest, begun time.Time) {
	push := &PushContext{Request: req, sorted: &sortedServices{}}
	ch := &change{since: begun}
	if !req.Start.IsZero() {
		ch.since = req.Start
	}
	// Services, endpoints and configs of one moment: no registry is in the middle
	// of a change then.
	s.pusher.Capture(func() {
		if s.configs != nil {
			push.configs = s.configs()
		}
		s.rebuildHosts(req, push, ch)
	})
	push.table = ch.table
	s.customizeAgain(push, ch)
	push.table = ch.table
	s.context = push
	s.provide(push, ch)
	ch.views = s.generateAll(push)
	s.cache.publish(ch)
	if ch.changes.Regroup {
		s.ReviewProxies(nil)
	}
	s.warnLeftOut(ch.leftOut)
	if req.Everything() {
		s.warnSilent(ch.table)
	}
}

// rebuildHosts makes the hosts of a request anew. It may be called again.
func (s *Server) rebuildHosts(req *xdsupdate.PushRequest, push *PushContext, ch *change) {
	table := s.cache.table
	ch.names, ch.leftOut, push.changed = nil, nil, nil
	full := req.Full || req.Everything()
	var services []*registry.Service
	if full {
		services = withoutNil(s.discovery.Services())
	}
	hosts := make(map[registry.Hostname]*host)
	rebuild := func(name registry.Hostname) {
		before := table.host(name)
		var after *host
		if full {
			after = newHost(before, servicesOf(services, name), s.EndpointIndex().Service, s.customizers)
		} else {
			after = before.refreshed(s.EndpointIndex().Service)
		}
		if before == after {
			return
		}
		hosts[name] = after
		push.changed = append(push.changed, ChangedHost{Hostname: name, EndpointsOnly: !full || sameServices(before, after)})
		ch.leftOut = appendLeftOut(ch.leftOut, before, after)
		if full {
			ch.names = appendAffected(ch.names, before, after)
		} else {
			ch.names = appendAffectedByEndpoints(ch.names, before, after)
		}
	}
	for _, name := range s.hostsOf(req, services) {
		rebuild(name)
	}
	ch.table = table.with(hosts)
}

// hostsOf returns the names of the hosts that a request is about, each once.
func (s *Server) hostsOf(req *xdsupdate.PushRequest, services []*registry.Service) []registry.Hostname {
	var out []registry.Hostname
	for key := range req.ConfigsUpdated {
		if xdsupdate.IsServiceKey(key) {
			out = append(out, registry.Hostname(key.Name))
		}
	}
	if req.Everything() {
		for name := range s.cache.table.hosts.All() {
			out = append(out, name)
		}
		for _, svc := range services {
			out = append(out, svc.Hostname)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// withoutNil returns a list, which is the host's, without nil.
func withoutNil[T any](list []*T) []*T {
	isNil := func(p *T) bool { return p == nil }
	if !slices.ContainsFunc(list, isNil) {
		return list
	}
	return slices.DeleteFunc(slices.Clone(list), isNil)
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

// customizeAgain renews the hosts that customizers want to customize anew.
func (s *Server) customizeAgain(push *PushContext, ch *change) {
	if len(s.customizers) == 0 {
		return
	}
	hosts := make(map[registry.Hostname]*host)
	for _, c := range s.customizers {
		if c.Changed == nil {
			continue
		}
		changed := c.Changed(push)
		if changed == nil {
			continue
		}
		for name := range changed {
			if before := ch.table.host(name); before != nil && hosts[name] == nil {
				after := before.renewed(s.customizers)
				hosts[name] = after
				ch.names = appendAffected(ch.names, before, after)
			}
		}
	}
	if len(hosts) > 0 {
		ch.table = ch.table.with(hosts)
	}
}

// greet calls the generators for views that are new. The caller does not hold
// building.
func (s *Server) greet() {
	s.building.Lock()
	defer s.building.Unlock()
	if !s.built {
		return // the first push greets
	}
	if views := s.generateNew(s.context); len(views) > 0 {
		s.cache.publish(&change{table: s.cache.table, provided: s.cache.provided, views: views})
	}
}

// generateAll calls generators for all views that a push may concern.
func (s *Server) generateAll(push *PushContext) []viewChange {
	if len(s.generators) == 0 {
		return nil
	}
	concerned := make([]func(View) bool, len(s.generators))
	some := false
	for i, g := range s.generators {
		concerned[i] = func(View) bool { return true }
		if selective, ok := g.(SelectiveGenerator); ok {
			concerned[i] = s.concerned(selective, push)
		}
		some = some || concerned[i] != nil
	}
	var out []viewChange
	if some {
		for _, v := range s.cache.readyViews() {
			if ch := s.generate(v, push, concerned); len(ch.names) > 0 {
				out = append(out, ch)
			}
		}
	}
	return append(out, s.generateNew(push)...)
}

// concerned asks a generator; if it panics, all views are concerned.
func (s *Server) concerned(g SelectiveGenerator, push *PushContext) (out func(View) bool) {
	defer func() {
		if p := recover(); p != nil {
			s.report(panicOf(g, p))
			out = func(View) bool { return true }
		}
	}()
	return g.Concerned(push)
}

// generateNew calls all generators for the views that are new.
func (s *Server) generateNew(push *PushContext) []viewChange {
	var out []viewChange
	for _, v := range s.cache.takeFresh() {
		out = append(out, s.generate(v, push.forNewView(), nil))
	}
	return out
}

// generate calls generators for a view: those that are concerned, or all.
func (s *Server) generate(v *view, push *PushContext, concerned []func(View) bool) viewChange {
	ch := viewChange{view: v, overlay: v.overlay}
	for i, g := range s.generators {
		if concerned != nil && (concerned[i] == nil || !concerned[i](v.View)) {
			continue
		}
		after, names, err := generate(g, v.View, ch.overlay, push)
		if err != nil {
			s.report(err)
		}
		ch.overlay, ch.names = after, append(ch.names, names...)
	}
	return ch
}
