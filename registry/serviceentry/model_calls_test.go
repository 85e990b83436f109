// SPDX-License-Identifier: Apache-2.0

package serviceentry_test

import (
	"maps"
	"net/netip"
	"slices"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

// said is what the calls of one delivery said, by "namespace/host".
type said struct {
	services, endpoints                                 map[string]int
	deleted, pushedServices, pushedEndpoints, proxiesAt map[string]bool
}

// checkCalls compares what was said with what changed.
func (m *modelSystem) checkCalls(before, after *outcome, calls []xdstest.Call) {
	m.t.Helper()
	s := m.read(calls)
	for key := range union(before.services, after.services) {
		was, is := len(before.services[key]) > 0, len(after.services[key]) > 0
		if was && !is && !s.deleted[key] {
			m.t.Errorf("%s is gone without SvcUpdate(delete)", key)
		}
		if !was && is && s.services[key] == 0 {
			m.t.Errorf("%s is new without SvcUpdate", key)
		}
		changed := !slices.Equal(before.services[key], after.services[key])
		if changed && !s.pushedServices[key] {
			m.t.Errorf("the services of %s changed without ConfigUpdate", key)
		}
		moved := !slices.Equal(before.endpoints[key], after.endpoints[key])
		if moved && is && s.endpoints[key] == 0 {
			m.t.Errorf("the endpoints of %s changed without EDSUpdate", key)
		}
		if moved && (before.dns[key] || after.dns[key]) && !s.pushedServices[key] && !s.pushedEndpoints[key] {
			m.t.Errorf("the endpoints of %s, which proxies resolve, changed without ConfigUpdate", key)
		}
	}
	if m.batches == 1 {
		m.checkMinimal(before, after, s)
	}
}

// checkMinimal: after one batch nothing is said that did not change, and nothing
// twice.
func (m *modelSystem) checkMinimal(before, after *outcome, s *said) {
	m.t.Helper()
	for key, n := range s.endpoints {
		if n > 1 || slices.Equal(before.endpoints[key], after.endpoints[key]) {
			m.t.Errorf("%d EDSUpdates of %s, whose endpoints were %v and are %v", n, key, before.endpoints[key], after.endpoints[key])
		}
	}
	for key, n := range s.services {
		// Of a target port that changed services show nothing.
		if n > 1 || slices.Equal(before.services[key], after.services[key]) && !m.touched[key] {
			m.t.Errorf("%d SvcUpdates of %s, whose services were %v and are %v", n, key, before.services[key], after.services[key])
		}
	}
	for key := range s.pushedServices {
		if slices.Equal(before.services[key], after.services[key]) && !m.touched[key] {
			m.t.Errorf("push of %s, whose services did not change", key)
		}
	}
	for key := range s.pushedEndpoints {
		if slices.Equal(before.endpoints[key], after.endpoints[key]) {
			m.t.Errorf("push of %s, whose endpoints did not change", key)
		}
	}
}

func union[V any](a, b map[string]V) map[string]V {
	out := maps.Clone(a)
	maps.Copy(out, b)
	return out
}

// read checks each call by itself and collects what they said.
func (m *modelSystem) read(calls []xdstest.Call) *said {
	m.t.Helper()
	s := &said{
		services: map[string]int{}, endpoints: map[string]int{}, deleted: map[string]bool{},
		pushedServices: map[string]bool{}, pushedEndpoints: map[string]bool{}, proxiesAt: map[string]bool{},
	}
	for _, c := range calls {
		key := c.Namespace + "/" + string(c.Hostname)
		switch c.Kind {
		case "SvcUpdate":
			s.services[key]++
			if c.Event == registry.EventDelete {
				s.deleted[key] = true
			}
		case "EDSUpdate":
			s.endpoints[key]++
			if !slices.IsSortedFunc(c.Endpoints, registry.CompareEndpoints) {
				m.t.Errorf("not sorted: %s", c)
			}
		case "EDSDeltaUpdate":
			s.endpoints[key]++
			if len(c.Changes) == 0 {
				m.t.Errorf("nothing changes: %s", c)
			}
			for _, change := range c.Changes {
				if change.Old.Equal(change.New) {
					m.t.Errorf("an endpoint changes into itself: %s", c)
				}
			}
		case "ConfigUpdate":
			m.readRequest(c, s)
		case "ProxyUpdate":
			if _, err := netip.ParseAddr(c.IP); err != nil {
				m.t.Errorf("not an IP address: %s", c)
			}
		case "EDSCacheUpdate", "RemoveShard":
			m.t.Errorf("unexpected call: %s", c)
		}
	}
	return s
}

func (m *modelSystem) readRequest(c xdstest.Call, s *said) {
	m.t.Helper()
	if !c.Request.Full || len(c.Request.ConfigsUpdated) == 0 {
		m.t.Errorf("not a full push of named services: %s", c)
	}
	pushed := s.pushedEndpoints
	if c.Request.Reason[xdsupdate.ReasonService] > 0 {
		pushed = s.pushedServices
	}
	for key := range c.Request.ConfigsUpdated {
		pushed[key.Namespace+"/"+key.Name] = true
	}
}
