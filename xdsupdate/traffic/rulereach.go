// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/registry"
)

// ruleReach says for which services there is room for what a rule adds to clusters: a
// cluster for each of its subsets, and its policy in each cluster, of every port of every
// service that its host covers. The oldest services come first. It is immutable; nil:
// there is room for all.
type ruleReach struct {
	// ranks are the positions of the services by age, by host names in lower case.
	ranks map[registry.Hostname]int
	// policy is for how many of them the policy of the rule counts.
	policy int
	// subsets are, for each DestinationRule of the rule, for how many its subsets count.
	subsets []int
}

// smallPolicy is how many bytes of policies are taken for a part of the cluster: they do
// not count as repetitions.
const smallPolicy = 512

// reachOf returns the reach of a rule, which may be nil.
func (st *state) reachOf(m *rule) *ruleReach {
	if m == nil || len(m.subsets) == 0 && m.policyBytes == 0 {
		return nil
	}
	host, limits := m.of[0].host, st.settings.limits
	if !host.IsWildcard() {
		return newRuleReach(m, st.coveredBy(host), limits)
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	reach, known := st.reaches[m]
	if !known {
		reach = newRuleReach(m, st.coveredBy(host), limits)
		st.reaches[m] = reach
	}
	return reach
}

// coveredService is a host name that a rule covers.
type coveredService struct {
	host    registry.Hostname
	created time.Time
	ports   int
}

// coveredBy returns the services that a host name of a rule covers, in any order.
func (st *state) coveredBy(host registry.Hostname) []coveredService {
	var out []coveredService
	add := func(name registry.Hostname, services []*registry.Service) {
		if len(services) == 0 {
			return
		}
		c := coveredService{host: name, created: services[0].CreationTime}
		for _, s := range services {
			c.ports += len(s.Ports)
			if s.CreationTime.Before(c.created) {
				c.created = s.CreationTime
			}
		}
		out = append(out, c)
	}
	if !host.IsWildcard() {
		add(host, st.world.named(host))
		return out
	}
	for name, services := range st.world.hosts() {
		if name.SubsetOf(host) {
			add(name, services)
		}
	}
	return out
}

func newRuleReach(m *rule, services []coveredService, limits Limits) *ruleReach {
	ports, clusters, bytes := 0, 0, m.policyBytes
	for _, s := range services {
		ports += s.ports
	}
	for _, n := range m.subsetsOf {
		clusters, bytes = clusters+n.count, bytes+n.bytes
	}
	if !exceeds(ports*clusters, limits.Clusters) && !exceeds(ports*bytes, limits.RepeatedBytes) {
		return nil
	}
	slices.SortFunc(services, func(a, b coveredService) int {
		return cmp.Or(a.created.Compare(b.created), cmp.Compare(a.host, b.host))
	})
	out := &ruleReach{ranks: make(map[registry.Hostname]int, len(services))}
	for i, s := range services {
		out.ranks[s.host] = i
	}
	clusters, bytes = 0, 0
	fitting := func(count, size int) int {
		for i, s := range services {
			if exceeds(clusters+s.ports*count, limits.Clusters) || exceeds(bytes+s.ports*size, limits.RepeatedBytes) {
				return i
			}
			clusters, bytes = clusters+s.ports*count, bytes+s.ports*size
		}
		return len(services)
	}
	out.policy = fitting(0, m.policyBytes)
	for _, n := range m.subsetsOf {
		out.subsets = append(out.subsets, fitting(n.count, n.bytes))
	}
	return out
}

// subsetsOf returns the subsets of a rule, which may be nil, that a host has clusters for.
func (st *state) subsetsOf(m *rule, host registry.Hostname) []*networking.Subset {
	reach := st.reachOf(m)
	switch {
	case m == nil:
		return nil
	case reach == nil:
		return m.subsets
	}
	var out []*networking.Subset
	for _, s := range m.subsets {
		if reach.ranks[lower(host)] < reach.subsets[m.origins[s]] {
			out = append(out, s)
		}
	}
	return out
}

// subsetOf returns the subset of a name if a host has clusters for it, or nil.
func (st *state) subsetOf(m *rule, host registry.Hostname, name string) *networking.Subset {
	s := m.subset(name)
	if s == nil {
		return nil
	}
	if reach := st.reachOf(m); reach != nil && reach.ranks[lower(host)] >= reach.subsets[m.origins[s]] {
		return nil
	}
	return s
}

// noRoomForPolicy returns why a host has no clusters although it has a service: without
// the policy they could be reached in plain text.
func (st *state) noRoomForPolicy(m *rule, host registry.Hostname) error {
	if reach := st.reachOf(m); reach != nil && reach.ranks[lower(host)] >= reach.policy {
		return fmt.Errorf("the policy in the clusters of all ports of all services has more than %d bytes", st.settings.limits.RepeatedBytes)
	}
	return nil
}

// noRoomForSubsets returns what of a rule is left out because there is no room for its
// subsets: an error for each DestinationRule, beside the first service without them.
func (st *state) noRoomForSubsets(m *rule, host registry.Hostname) []error {
	reach := st.reachOf(m)
	if reach == nil {
		return nil
	}
	var out []error
	for i, r := range m.of {
		if m.subsetsOf[i].count > 0 && reach.ranks[lower(host)] == reach.subsets[i] {
			out = append(out, leftOut(r.config, "spec.subsets", st.tooManySubsets(host)))
		}
	}
	return out
}

func (st *state) tooManySubsets(host registry.Hostname) error {
	limits := st.settings.limits
	return fmt.Errorf("%s, and services that are newer, have no clusters for the subsets: for all ports of all services they would be more than %d, or their policies more than %d bytes",
		host, limits.Clusters, limits.RepeatedBytes)
}

// subsetsSize is how much the subsets of a DestinationRule add to one port.
type subsetsSize struct{ count, bytes int }

// bytesOf returns how many bytes of a policy are in a cluster of a port, at most.
func bytesOf(p *networking.TrafficPolicy) int {
	if p == nil {
		return 0
	}
	ports, most := 0, 0
	for _, at := range p.GetPortLevelSettings() {
		n := proto.Size(at)
		ports, most = ports+n, max(most, n)
	}
	return proto.Size(p) - ports + most
}

// looked returns the reaches of the rules for wildcards that were looked at.
func (st *state) looked() map[*rule]*ruleReach {
	st.mu.Lock()
	defer st.mu.Unlock()
	return maps.Clone(st.reaches)
}

// reachesAfter returns those that a difference does not change.
func (st *state) reachesAfter(d *difference, x *index) map[*rule]*ruleReach {
	out := make(map[*rule]*ruleReach)
	if len(d.services) > 0 {
		return out
	}
	for m, reach := range st.reaches {
		if of, ok := x.rules.hosts.Get(ruleKey{m.of[0].namespace, m.of[0].host}); ok && slices.Contains(of.merged, m) {
			out[m] = reach
		}
	}
	return out
}
