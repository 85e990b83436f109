// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"slices"
	"strings"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/failure"
)

// moment is what a push reads: services, endpoints and configs as they were at once.
// It is immutable; everything that clients are sent is derived from it while the
// registries go on.
type moment struct {
	services  serviceReader
	endpoints *xdsupdate.EndpointSnapshot
	configs   ConfigReader
	own       resourcesByType
	// whole: all of it belongs together.
	whole bool
}

// serviceReader finds the services of one moment by host name.
type serviceReader struct {
	// set is what a registry.ServiceSnapshotter had. Without one list has all services,
	// sorted by CompareServices.
	set  *registry.ServiceSet
	list []*registry.Service
	// ok: services were read. If not, hosts stay as they are but for their endpoints.
	ok bool
}

// of returns the services of a host in the order of CompareServices.
func (s serviceReader) of(name registry.Hostname) []*registry.Service {
	if s.set == nil {
		return servicesOf(s.list, name)
	}
	services := withoutNil(s.set.Host(name))
	if len(services) > 1 {
		services = slices.Clone(services)
		slices.SortStableFunc(services, registry.CompareServices)
	}
	return services
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

// withoutNil returns a list, which is the host's, without nil.
func withoutNil[T any](list []*T) []*T {
	isNil := func(p *T) bool { return p == nil }
	if !slices.ContainsFunc(list, isNil) {
		return list
	}
	return slices.DeleteFunc(slices.Clone(list), isNil)
}

// prepareCapture is the Pusher's Prepare.
func (s *Server) prepareCapture() { s.services.prepare() }

// capture is the Pusher's Capture.
func (s *Server) capture(req *xdsupdate.PushRequest) {
	m := &moment{endpoints: s.EndpointIndex().Snapshot(), configs: s.readConfigs(), own: s.own.capture()}
	full := req.Full || req.Everything() || !s.built
	if s.services.snapshotter != nil || full {
		m.services = s.services.read()
	}
	// A push of endpoints waits for nothing: what providers have configs of comes with the
	// full one that they ask for.
	m.whole = !full || s.captureProviders()
	s.moment = m
}

// captureProviders has providers fix what they read, and reports whether that is of the
// same moment as all else.
func (s *Server) captureProviders() bool {
	whole := true
	for _, p := range s.providers {
		if c, ok := p.Provider.(Capturer); ok {
			s.cache.failures.Undone(p.part.Call(func() error {
				whole = c.Capture() && whole
				return nil
			}))
		}
	}
	return whole
}

// readConfigs reads the host's configs. If that panics those of the push before stay.
func (s *Server) readConfigs() (configs ConfigReader) {
	if s.configs == nil {
		return nil
	}
	if s.context != nil {
		configs = s.context.moment.configs
	}
	s.cache.failures.Undone(failure.Part{In: failure.InConfigs}.Call(func() error {
		configs = s.configs()
		return nil
	}))
	return configs
}
