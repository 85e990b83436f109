// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/hostname"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/objects"
)

// ruleReach limits the services that a rule applies to. A rule adds clusters for its subsets, and
// its policy to each cluster, for every port of every service that its host covers. The services
// are ranked by byShares. It is immutable. Nil means that all services are within the limits.
type ruleReach struct {
	// ranks are the ranks of the services, by host name in lower case.
	ranks map[registry.Hostname]int
	// policy is the number of services that the policy applies to.
	policy int
	// hashed is the number of services with consistent hashing.
	hashed int
	// subsets is the number of services with clusters for subsets, for each DestinationRule of the
	// rule.
	subsets []int
}

// reachOf returns the reach of a rule, which may be nil.
func (st *state) reachOf(m *objects.Rule) *ruleReach {
	if m == nil || len(m.Subsets) == 0 && m.PolicyBytes == 0 && m.HashEntries == 0 {
		return nil
	}
	host, limits := m.Of[0].Host, st.settings.limits
	if !host.IsWildcard() {
		if services := st.world.Named(host); len(services) > 0 && exceedsAt(m, limits, countPorts(services)) {
			return newRuleReach(m, []claim{cover(host, services)}, limits)
		}
		return nil
	}
	return st.reaches.Get(m, func() *ruleReach { return newRuleReach(m, st.coveredBy(host), limits) })
}

// cover returns the claim of the services with a host name, of which there is at least one: a port
// each, because a rule adds the same to all ports.
func cover(name registry.Hostname, services []*registry.Service) claim {
	oldest := slices.MinFunc(services, func(a, b *registry.Service) int { return a.CreationTime.Compare(b.CreationTime) })
	return claim{oldest.CreationTime, string(name), oldest.Attributes.Namespace, countPorts(services)}
}

func countPorts(services []*registry.Service) (ports int) {
	for _, s := range services {
		ports += len(s.Ports)
	}
	return ports
}

// coveredBy returns the services that a wildcard host covers, in unspecified order.
func (st *state) coveredBy(host registry.Hostname) []claim {
	var out []claim
	for name, services := range st.world.Hosts() {
		if name.SubsetOf(host) && len(services) > 0 {
			out = append(out, cover(name, services))
		}
	}
	return out
}

// exceedsAt reports whether a rule exceeds limits at services with as many ports.
func exceedsAt(m *objects.Rule, limits Limits, ports int) bool {
	clusters, bytes, entries := m.Costs()
	return exceeds(ports*clusters, limits.Clusters) || exceeds(ports*bytes, limits.RepeatedBytes) || exceeds(ports*entries, limits.HashEntries)
}

func newRuleReach(m *objects.Rule, covered []claim, limits Limits) *ruleReach {
	ports := 0
	for _, s := range covered {
		ports += s.cost
	}
	if !exceedsAt(m, limits, ports) {
		return nil
	}
	out := &ruleReach{ranks: make(map[registry.Hostname]int, len(covered))}
	services := make([]claim, len(covered))
	for i, at := range byShares(covered) {
		services[i] = covered[at]
		out.ranks[registry.Hostname(services[i].name)] = i
	}
	clusters, bytes, hashed := 0, 0, 0
	fitting := func(count, size, entries int) int {
		for i, s := range services {
			c, b, h := clusters+s.cost*count, bytes+s.cost*size, hashed+s.cost*entries
			if exceeds(c, limits.Clusters) || exceeds(b, limits.RepeatedBytes) || exceeds(h, limits.HashEntries) {
				return i
			}
			clusters, bytes, hashed = c, b, h
		}
		return len(services)
	}
	_, _, entries := m.Costs()
	out.hashed, out.policy = fitting(0, 0, entries), fitting(0, m.PolicyBytes, 0)
	for _, n := range m.SubsetsOf {
		out.subsets = append(out.subsets, fitting(n.Count, n.Bytes, 0))
	}
	return out
}

// noRoomForHash returns an error if requests to a host are not hashed because its rule exceeds the
// limit. First is true for the highest-ranked service without hashing.
func (st *state) noRoomForHash(m *objects.Rule, host registry.Hostname) (first bool, reason error) {
	reach := st.reachOf(m)
	if reach == nil || reach.rank(host) < reach.hashed {
		return false, nil
	}
	reason = fmt.Errorf("the requests to %s, and to services beyond the shares of their namespaces, are not hashed: for all ports, subsets and priorities of all services rings and tables would have more than %d entries",
		host, st.settings.limits.HashEntries)
	return reach.rank(host) == reach.hashed, reason
}

func withoutHash(p *networking.TrafficPolicy) *networking.TrafficPolicy {
	if p.GetLoadBalancer().GetConsistentHash() == nil {
		return p
	}
	p = proto.CloneOf(p)
	p.LoadBalancer.LbPolicy = nil
	return p
}

// subsetsOf returns the subsets of a rule with clusters for a host. The rule may be nil.
func (st *state) subsetsOf(m *objects.Rule, host registry.Hostname) []*networking.Subset {
	reach := st.reachOf(m)
	switch {
	case m == nil:
		return nil
	case reach == nil:
		return m.Subsets
	}
	return slices.DeleteFunc(slices.Clone(m.Subsets), func(s *networking.Subset) bool { return !reach.covers(m, s, host) })
}

// subsetOf returns the named subset if a host has clusters for it, or nil.
func (st *state) subsetOf(m *objects.Rule, host registry.Hostname, name string) *networking.Subset {
	s := m.Subset(name)
	if s == nil || !st.reachOf(m).covers(m, s, host) {
		return nil
	}
	return s
}

// covers reports whether a host has clusters for a subset of the rule.
func (x *ruleReach) covers(m *objects.Rule, s *networking.Subset, host registry.Hostname) bool {
	return x == nil || x.rank(host) < x.subsets[m.Origins[s]]
}

// rank returns the rank of the service with a host name.
func (x *ruleReach) rank(host registry.Hostname) int { return x.ranks[hostname.Lower(host)] }

// noRoomForPolicy returns an error if a host has no clusters because its policy exceeds limits.
// Without the policy, clients could connect in plain text.
func (st *state) noRoomForPolicy(m *objects.Rule, host registry.Hostname) error {
	if reach := st.reachOf(m); reach != nil && reach.rank(host) >= reach.policy {
		return fmt.Errorf("the policy in the clusters of all ports of all services has more than %d bytes", st.settings.limits.RepeatedBytes)
	}
	return nil
}

// noRoomForSubsets returns an error for each DestinationRule whose subsets exceed limits, if the
// host is the highest-ranked service without them.
func (st *state) noRoomForSubsets(m *objects.Rule, host registry.Hostname) []error {
	reach := st.reachOf(m)
	if reach == nil {
		return nil
	}
	var out []error
	for i, r := range m.Of {
		if m.SubsetsOf[i].Count > 0 && reach.rank(host) == reach.subsets[i] {
			out = append(out, leftOut(r.Config, "spec.subsets", fmt.Errorf(
				"%s, and services beyond the shares of their namespaces, have no clusters for the subsets: for all ports of all services they would be more than %d, or their policies more than %d bytes",
				host, st.settings.limits.Clusters, st.settings.limits.RepeatedBytes)))
		}
	}
	return out
}

// keepReaches hands the reaches that a difference does not change to the next state.
func (st *state) keepReaches(d *difference, next *state) {
	if len(d.services) > 0 {
		return
	}
	for m, reach := range st.reaches.All() {
		if of := next.Rules.For(m.Of[0].Namespace, m.Of[0].Host); of != nil && slices.Contains(of.Merged, m) {
			next.reaches.Get(m, func() *ruleReach { return reach })
		}
	}
}
