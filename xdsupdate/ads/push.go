// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/pilotkit/pilotkit/internal/guard"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// everything asks to compare all there is with the discovery.
func everything() *xdsupdate.PushRequest {
	return &xdsupdate.PushRequest{Full: true, Forced: true}
}

// push makes the state of what a request is about anew and publishes it. What panics
// of it is made up for by a later push.
func (s *Server) push(req *xdsupdate.PushRequest) {
	begun := time.Now()
	if p := guard.Call(func() { req = s.build(req, begun) }); p != nil {
		s.cache.failures.undone(part{in: partPush}.wrap(p))
	}
	s.reportFailures()
	s.observing(func(o Observer) {
		o.Pushed(PushEvent{Request: req, Waited: waited(req, begun), Took: time.Since(begun)})
	})
}

// build returns the request that was pushed.
func (s *Server) build(req *xdsupdate.PushRequest, begun time.Time) *xdsupdate.PushRequest {
	s.building.Lock()
	defer s.building.Unlock()
	if !s.built {
		start := req.Start
		req = everything()
		req.Start = start
	}
	s.rebuild(req, begun)
	return req
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
	ch := &change{since: begun, about: hintsOf(req.ConfigsUpdated)}
	if s.unsure.Swap(false) {
		ch.changes.Everything = acceptAll
	}
	if !req.Start.IsZero() {
		ch.since = req.Start
	}
	// Services, endpoints and configs of one moment: no registry is in the middle
	// of a change then.
	s.pusher.Capture(func() {
		s.readConfigs(push)
		s.rebuildHosts(req, push, ch)
	})
	if ch.incomplete && !s.built {
		return // an answer from nothing would take everything away from proxies
	}
	s.built = true
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

// readConfigs reads the host's configs. If that panics those of the push before stay.
func (s *Server) readConfigs(push *PushContext) {
	if s.configs == nil {
		return
	}
	if s.context != nil {
		push.configs = s.context.configs
	}
	s.cache.failures.undone(part{in: partConfigs}.call(func() error {
		push.configs = s.configs()
		return nil
	}))
}

// readServices reads the discovery. Not ok: it panicked.
func (s *Server) readServices() (services []*registry.Service, ok bool) {
	err := part{in: partServices}.call(func() error {
		services = withoutNil(s.discovery.Services())
		return nil
	})
	s.cache.failures.undone(err)
	return services, err == nil
}

// rebuildHosts makes the hosts of a request anew. It may be called again.
func (s *Server) rebuildHosts(req *xdsupdate.PushRequest, push *PushContext, ch *change) {
	table := s.cache.table
	ch.names, ch.leftOut, push.changed, ch.incomplete = nil, nil, nil, false
	full := req.Full || req.Everything()
	var services []*registry.Service
	if full { // without services, hosts stay as they are but for their endpoints
		services, full = s.readServices()
		ch.incomplete = !full
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
		names, omitted := ch.names, appendLeftOut(ch.leftOut, before, after)
		if full {
			names = appendAffected(names, before, after)
		} else {
			names = appendAffectedByEndpoints(names, before, after)
		}
		endpointsOnly := !full || sameServices(before, after)
		hosts[name], ch.names, ch.leftOut = after, names, omitted
		push.changed = append(push.changed, ChangedHost{Hostname: name, EndpointsOnly: endpointsOnly})
	}
	for _, name := range s.hostsOf(req, services) {
		s.cache.failures.add(part{partHost, string(name)}.call(func() error {
			rebuild(name)
			return nil
		}))
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
		s.cache.failures.undone(c.part().call(func() error {
			c.renew(push, ch, s.customizers, hosts)
			return nil
		}))
	}
	if len(hosts) > 0 {
		ch.table = ch.table.with(hosts)
	}
}

// renew renews the hosts that the customizer wants to customize anew.
func (c Customizer) renew(push *PushContext, ch *change, all customizers, hosts map[registry.Hostname]*host) {
	if c.Changed == nil {
		return
	}
	changed := c.Changed(push)
	if changed == nil {
		return
	}
	for name := range changed {
		if before := ch.table.host(name); before != nil && hosts[name] == nil {
			after := before.renewed(all)
			hosts[name] = after
			ch.names = appendAffected(ch.names, before, after)
		}
	}
}

// greet calls the generators for views that are new. The caller does not hold
// building.
func (s *Server) greet() {
	if p := guard.Call(s.greetViews); p != nil {
		s.cache.failures.undone(part{in: partPush}.wrap(p))
	}
	s.reportFailures()
}

func (s *Server) greetViews() {
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
		if selective, ok := g.Generator.(SelectiveGenerator); ok {
			concerned[i] = s.concerned(g.part, selective, push)
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

// concerned asks a generator. If it panics, all views are concerned.
func (s *Server) concerned(of part, g SelectiveGenerator, push *PushContext) (out func(View) bool) {
	var accepts func(View) bool
	err := of.call(func() error {
		accepts = g.Concerned(push)
		return nil
	})
	if s.cache.failures.add(err); err == nil && accepts == nil {
		return nil
	}
	return func(v View) (accepted bool) {
		accepted = err != nil
		failed := of.call(func() error {
			accepted = accepted || accepts(v)
			return nil
		})
		s.cache.failures.add(failed)
		return accepted || failed != nil
	}
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
		after, names, err := g.generate(v.View, ch.overlay, push)
		if errors.As(err, new(*guard.PanicError)) {
			s.cache.failures.undone(err)
		} else {
			s.cache.failures.add(err)
		}
		ch.overlay, ch.names = after, append(ch.names, names...)
	}
	return ch
}
