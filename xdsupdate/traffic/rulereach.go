// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/internal/xdsbuild"
	"github.com/pilotkit/pilotkit/registry"
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

// smallPolicy is the maximum size in bytes of a policy that does not count as a repetition.
const smallPolicy = 512

// reachOf returns the reach of a rule, which may be nil.
func (st *state) reachOf(m *rule) *ruleReach {
	if m == nil || len(m.subsets) == 0 && m.policyBytes == 0 && m.hashEntries == 0 {
		return nil
	}
	host, limits := m.of[0].host, st.settings.limits
	if !host.IsWildcard() {
		if services := st.world.named(host); len(services) > 0 && m.exceeds(limits, countPorts(services)) {
			return newRuleReach(m, []coveredService{cover(host, services)}, limits)
		}
		return nil
	}
	return st.reaches.get(m, func() *ruleReach { return newRuleReach(m, st.coveredBy(host), limits) })
}

type coveredService struct {
	host      registry.Hostname
	namespace string
	created   time.Time
	ports     int
}

// cover returns the services with a host name, of which there is at least one.
func cover(name registry.Hostname, services []*registry.Service) coveredService {
	c := coveredService{
		host: name, namespace: services[0].Attributes.Namespace, created: services[0].CreationTime, ports: countPorts(services),
	}
	for _, s := range services {
		if s.CreationTime.Before(c.created) {
			c.namespace, c.created = s.Attributes.Namespace, s.CreationTime
		}
	}
	return c
}

func countPorts(services []*registry.Service) (ports int) {
	for _, s := range services {
		ports += len(s.Ports)
	}
	return ports
}

// coveredBy returns the services that a wildcard host covers, in unspecified order.
func (st *state) coveredBy(host registry.Hostname) []coveredService {
	var out []coveredService
	for name, services := range st.world.hosts() {
		if name.SubsetOf(host) && len(services) > 0 {
			out = append(out, cover(name, services))
		}
	}
	return out
}

// costs returns what a rule adds to each port of a service: clusters, bytes of policy, and hash
// entries.
func (m *rule) costs() (clusters, bytes, entries int) {
	bytes, entries = m.policyBytes, m.hashEntries
	for _, n := range m.subsetsOf {
		clusters, bytes, entries = clusters+n.count, bytes+n.bytes, entries+n.hashEntries
	}
	return clusters, bytes, entries
}

// exceeds reports whether a rule exceeds limits at services with as many ports.
func (m *rule) exceeds(limits Limits, ports int) bool {
	clusters, bytes, entries := m.costs()
	return exceeds(ports*clusters, limits.Clusters) || exceeds(ports*bytes, limits.RepeatedBytes) || exceeds(ports*entries, limits.HashEntries)
}

func newRuleReach(m *rule, services []coveredService, limits Limits) *ruleReach {
	ports := 0
	for _, s := range services {
		ports += s.ports
	}
	if !m.exceeds(limits, ports) {
		return nil
	}
	_, _, entries := m.costs()
	slices.SortFunc(services, func(a, b coveredService) int {
		return cmp.Or(a.created.Compare(b.created), cmp.Compare(a.host, b.host))
	})
	claims := make([]claim, len(services))
	for i, s := range services {
		claims[i] = claim{s.namespace, s.ports} // The rule adds the same to each port.
	}
	byAge := slices.Clone(services)
	for i, at := range byShares(claims) {
		services[i] = byAge[at]
	}
	out := &ruleReach{ranks: make(map[registry.Hostname]int, len(services))}
	for i, s := range services {
		out.ranks[s.host] = i
	}
	clusters, bytes := 0, 0
	fitting := func(count, size int) int {
		for i, s := range services {
			if exceeds(clusters+s.ports*count, limits.Clusters) || exceeds(bytes+s.ports*size, limits.RepeatedBytes) {
				return i
			}
			clusters, bytes = clusters+s.ports*count, bytes+s.ports*size
		}
		return len(services)
	}
	out.hashed = servicesHashed(services, entries, limits.HashEntries)
	out.policy = fitting(0, m.policyBytes)
	for _, n := range m.subsetsOf {
		out.subsets = append(out.subsets, fitting(n.count, n.bytes))
	}
	return out
}

// servicesHashed returns the number of services within the limit of hash entries.
func servicesHashed(services []coveredService, entries, limit int) int {
	sum := 0
	for i, s := range services {
		if sum += s.ports * entries; exceeds(sum, limit) {
			return i
		}
	}
	return len(services)
}

// noRoomForHash returns an error if requests to a host are not hashed because its rule exceeds the
// limit. First is true for the highest-ranked service without hashing.
func (st *state) noRoomForHash(m *rule, host registry.Hostname) (first bool, reason error) {
	reach := st.reachOf(m)
	if reach == nil || reach.ranks[lower(host)] < reach.hashed {
		return false, nil
	}
	reason = fmt.Errorf("the requests to %s, and to services beyond the shares of their namespaces, are not hashed: for all ports, subsets and priorities of all services rings and tables would have more than %d entries",
		host, st.settings.limits.HashEntries)
	return reach.ranks[lower(host)] == reach.hashed, reason
}

func withoutHash(p *networking.TrafficPolicy) *networking.TrafficPolicy {
	if p.GetLoadBalancer().GetConsistentHash() == nil {
		return p
	}
	p = proto.CloneOf(p)
	p.LoadBalancer.LbPolicy = nil
	return p
}

// hashEntries returns the maximum number of hash entries that a policy costs for one port.
func hashEntries(p *networking.TrafficPolicy) int {
	entries := xdsbuild.HashEntries(p.GetLoadBalancer())
	for _, at := range p.GetPortLevelSettings() {
		entries = max(entries, xdsbuild.HashEntries(at.GetLoadBalancer()))
	}
	return entries
}

// subsetsOf returns the subsets of a rule with clusters for a host. The rule may be nil.
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

// subsetOf returns the named subset if a host has clusters for it, or nil.
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

// noRoomForPolicy returns an error if a host has no clusters because its policy exceeds limits.
// Without the policy, clients could connect in plain text.
func (st *state) noRoomForPolicy(m *rule, host registry.Hostname) error {
	if reach := st.reachOf(m); reach != nil && reach.ranks[lower(host)] >= reach.policy {
		return fmt.Errorf("the policy in the clusters of all ports of all services has more than %d bytes", st.settings.limits.RepeatedBytes)
	}
	return nil
}

// noRoomForSubsets returns an error for each DestinationRule whose subsets exceed limits, if the
// host is the highest-ranked service without them.
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
	return fmt.Errorf("%s, and services beyond the shares of their namespaces, have no clusters for the subsets: for all ports of all services they would be more than %d, or their policies more than %d bytes",
		host, limits.Clusters, limits.RepeatedBytes)
}

// subsetsSize is the contribution of a DestinationRule's subsets to one port.
type subsetsSize struct{ count, bytes, hashEntries int }

// bytesOf returns the maximum size of a policy in a cluster of one port.
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

// keepReaches hands the reaches that a difference does not change to the next state.
func (st *state) keepReaches(d *difference, next *state) {
	if len(d.services) > 0 {
		return
	}
	for m, reach := range st.reaches.all() {
		if of, ok := next.rules.hosts.Get(ruleKey{m.of[0].namespace, m.of[0].host}); ok && slices.Contains(of.merged, m) {
			next.reaches.get(m, func() *ruleReach { return reach })
		}
	}
}
