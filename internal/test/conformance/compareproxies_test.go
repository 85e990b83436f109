// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	gocmp "github.com/google/go-cmp/cmp"
)

// variants returns the alternatives of a section, normalised.
func variants[T, N any](want *expected, section string, normalise func(T) N) []any {
	var out []any
	for _, raw := range want.rec.Alternatives[section] {
		var v T
		if err := json.Unmarshal(raw, &v); err == nil {
			out = append(out, normalise(v))
		}
	}
	return out
}

// lookup returns the answers of GetService that are right. The recorded answer
// is, unless it was arbitrary (row 5), depended on a creation time that it did
// not follow (row 13), or preferred another registry to Kubernetes (row 17).
func (e *expected) lookup(hostname string) []string {
	recorded := e.GetService[hostname]
	ours := e.rightAnswer(hostname)
	if len(recorded) == 1 && (ours == "" || !e.staleTimes(hostname) && !e.beatenByKubernetes(hostname)) {
		return recorded
	}
	if ours == "" {
		return recorded
	}
	return []string{ours}
}

// rightAnswer is the first service of a host name by creation time, name (which is
// the host for a ServiceEntry), namespace, name of the ServiceEntry and the order
// of addresses (row 5), Kubernetes before others (row 17).
func (e *expected) rightAnswer(hostname string) string {
	var candidates []service
	aggregate := len(e.RegistryOrder) > 0
	for _, s := range e.Services {
		if s.Hostname == hostname {
			candidates = append(candidates, s)
		}
	}
	candidates = row17KubernetesFirst(candidates)
	if len(candidates) == 0 {
		return ""
	}
	first := slices.MinFunc(candidates, func(a, b service) int {
		return cmp.Or(
			strings.Compare(sortableTime(a.CreationTime), sortableTime(b.CreationTime)),
			e.bornBefore(a, b),
			strings.Compare(a.Name, b.Name),
			strings.Compare(a.Namespace, b.Namespace),
			strings.Compare(a.ObjectName, b.ObjectName),
			e.addressOrder[a.resource()]-e.addressOrder[b.resource()],
		)
	})
	if aggregate {
		return first.Registry + ":" + first.resource()
	}
	return first.resource()
}

// bornBefore orders services that the store's clock stamped.
func (e *expected) bornBefore(a, b service) int {
	if a.CreationTime != timeNow {
		return 0
	}
	return e.born[a.resource()] - e.born[b.resource()]
}

// sortableTime makes timeZero the first and timeNow the last of times.
func sortableTime(t string) string {
	switch t {
	case timeZero:
		return "0"
	case timeNow:
		return "9"
	default:
		return t
	}
}

// staleTimes reports whether the recorded creation times of the host's services differ from those
// of the stored objects.
func (e *expected) staleTimes(hostname string) bool {
	for i, s := range e.rec.Services {
		if s.Hostname == hostname && s.CreationTime != e.Services[i].CreationTime {
			return true
		}
	}
	return false
}

func (e *expected) beatenByKubernetes(hostname string) bool {
	for _, s := range e.Services {
		if s.Hostname == hostname && s.Registry == providerKubernetes {
			return true
		}
	}
	return false
}

// proxies compares what each proxy gets.
func (c *comparison) proxies() {
	if len(c.want.Proxies) != len(c.got.Proxies) {
		c.report("proxies", "got %d, want %d", len(c.got.Proxies), len(c.want.Proxies))
		return
	}
	for i, want := range c.want.Proxies {
		if c.variantOfProxies(i) {
			continue
		}
		name := fmt.Sprintf("proxies[%d] %v %s %s", i, want.IPs, want.Namespace, want.Cluster)
		c.targets(name, want, c.got.Proxies[i])
		c.labels(name, want, c.got.Proxies[i])
		c.equal(name+" serviceAddresses", c.want.serviceAddresses(want), c.got.Proxies[i].ServiceAddresses)
	}
}

// variantOfProxies reports whether the proxy got the services of an alternative.
func (c *comparison) variantOfProxies(i int) bool {
	for _, v := range variants(c.want, "proxies", func(p []proxyState) []proxyState { return p }) {
		alternative := v.([]proxyState)
		if i < len(alternative) && gocmp.Equal(targetSet(alternative[i].Targets), targetSet(c.got.Proxies[i].Targets)) &&
			gocmp.Equal(alternative[i].WorkloadLabels, c.got.Proxies[i].WorkloadLabels) {
			return true
		}
	}
	return false
}

// targets compares the service ports that a proxy serves. Row 16 allows more than the recorded
// ones: the ports of endpoints with the proxy's address as a further address, exactly one for each
// such endpoint.
func (c *comparison) targets(name string, want, got proxyState) {
	wanted, gotten := targetSet(want.Targets), targetSet(got.Targets)
	further := c.want.row16FurtherAddresses(want)
	ofFurther := func(t target) bool { return slices.ContainsFunc(further, func(m match) bool { return m.serves(t) }) }
	if duplicates(got.Targets, ofFurther) > duplicates(want.Targets, ofFurther) {
		c.report(name, "targets: more duplicates than recorded (row 5): %v", got.Targets)
	}
	for t := range gotten {
		if !wanted[t] && (c.want.row5FurtherAddress(t, wanted) || ofFurther(t)) {
			delete(gotten, t)
		}
	}
	free := func(t target, _ bool) bool { return c.want.free[key{t.Hostname, t.Namespace}] }
	maps.DeleteFunc(wanted, free)
	maps.DeleteFunc(gotten, free)
	c.equal(name+" targets", wanted, gotten)
	for _, m := range further {
		if !slices.ContainsFunc(got.Targets, m.serves) && !c.want.removedShards[m.shard] {
			c.report(name, "targets: none for the further address of %v of %s (row 16)", m.endpoint.Addresses, m.key)
		}
	}
}

// row5FurtherAddress: of a DNS_ROUND_ROBIN entry with several addresses, the
// endpoint counted once for each, so that row 15 dropped it for all but one of
// them. Ours is that of all: there must be the recorded one, and may be the others.
func (e *expected) row5FurtherAddress(t target, recorded map[target]bool) bool {
	roundRobin := slices.ContainsFunc(e.Services, func(s service) bool {
		return s.Resolution == resolutionDNSRoundRobin && s.key() == key{t.Hostname, t.Namespace} &&
			s.ObjectName == t.ObjectName && s.DefaultAddress == t.DefaultAddress
	})
	return roundRobin && slices.ContainsFunc(slices.Collect(maps.Keys(recorded)), func(r target) bool {
		r.DefaultAddress = t.DefaultAddress
		return r == t
	})
}

// duplicates returns how many targets repeat another one, apart from some.
func duplicates(targets []target, except func(target) bool) int {
	n, seen := 0, map[target]bool{}
	for _, t := range targets {
		if seen[t] && !except(t) {
			n++
		}
		seen[t] = true
	}
	return n
}

func targetSet(targets []target) map[target]bool {
	out := map[target]bool{}
	for _, t := range targets {
		out[t] = true
	}
	return out
}

// match is an endpoint of the index that a proxy may be.
type match struct {
	key      key
	shard    string
	endpoint endpoint
}

// serves reports whether the target can be of the endpoint.
func (m match) serves(t target) bool {
	return t.Hostname == m.key.Hostname && t.Namespace == m.key.Namespace && t.TargetPort == m.endpoint.EndpointPort &&
		(m.endpoint.LegacyClusterPortKey == 0 || t.Port == m.endpoint.LegacyClusterPortKey)
}

// matches returns the endpoints of the recorded index with a proxy address that accept selects.
func (e *expected) matches(p proxyState, accept func(position int) bool) []match {
	var out []match
	for k, shards := range e.all.after {
		if p.Namespace != "" && k.Namespace != p.Namespace {
			continue
		}
		for shard, endpoints := range shards {
			for _, ep := range endpoints {
				for i, a := range ep.Addresses {
					if accept(i) && slices.Contains(p.IPs, a) {
						out = append(out, match{key: k, shard: shard, endpoint: ep})
						break
					}
				}
			}
		}
	}
	return out
}

// row16FurtherAddresses: proxies were found by an endpoint's first address only.
// Ours are found by any.
func (e *expected) row16FurtherAddresses(p proxyState) []match {
	return slices.DeleteFunc(e.row16AnyAddress(p), func(m match) bool {
		return slices.Contains(p.IPs, firstAddress(m.endpoint))
	})
}

// row16AnyAddress adds the endpoints that the recorded registry found, but by a
// later address of the proxy: ours may find them by an earlier one, which matters
// where the first address that has endpoints decides.
func (e *expected) row16AnyAddress(p proxyState) []match {
	return e.matches(p, func(i int) bool { return i > 0 })
}

// row17OtherClusters: a non-Kubernetes registry gave no labels to proxies of other
// clusters. Ours serves every cluster.
func (e *expected) row17OtherClusters(p proxyState) []match {
	if len(e.RegistryOrder) == 0 || p.WorkloadLabels != nil || len(p.WorkloadLabelsOneOf) > 0 {
		return nil
	}
	return slices.DeleteFunc(e.matches(p, func(int) bool { return true }), func(m match) bool {
		return !strings.HasPrefix(m.shard, providerExternal+"/") || e.removedShards[m.shard]
	})
}

// row17StaticLabels is row17OtherClusters for static registries: the labels that
// they have for the proxy.
func (e *expected) row17StaticLabels(p proxyState) []map[string]string {
	if p.WorkloadLabels != nil || len(p.WorkloadLabelsOneOf) > 0 {
		return nil
	}
	var out []map[string]string
	for _, r := range e.members {
		for _, l := range r.WorkloadLabels {
			if r.Provider != providerKubernetes && slices.Contains(p.IPs, l.IP) {
				out = append(out, l.Labels)
			}
		}
	}
	return out
}

// labels compares the workload labels of a proxy: the recorded ones, or one of
// them if they were arbitrary (row 6).
func (c *comparison) labels(name string, want, got proxyState) {
	allowed := want.WorkloadLabelsOneOf
	if want.WorkloadLabels != nil {
		allowed = append(slices.Clone(allowed), *want.WorkloadLabels)
	}
	none := len(allowed) == 0
	for _, m := range append(c.want.row16AnyAddress(want), c.want.row17OtherClusters(want)...) {
		allowed, none = append(allowed, m.endpoint.Labels), false
	}
	if static := c.want.row17StaticLabels(want); len(static) > 0 {
		allowed, none = append(allowed, static...), false
	}
	if c.want.freeProxy(want) || c.want.freeProxy(got) {
		return
	}
	switch {
	case none && got.WorkloadLabels == nil:
	case none || got.WorkloadLabels == nil:
		c.report(name, "workloadLabels: got %s, want one of %v", showLabels(got.WorkloadLabels), allowed)
	case !slices.ContainsFunc(allowed, func(l map[string]string) bool { return maps.Equal(l, *got.WorkloadLabels) }):
		c.report(name, "workloadLabels: got %v, want one of %v", *got.WorkloadLabels, allowed)
	}
}

func showLabels(l *map[string]string) string {
	if l == nil {
		return "no answer"
	}
	return fmt.Sprint(*l)
}

// freeProxy reports whether the proxy may be an endpoint of a service whose
// endpoints are not determined by the recording.
func (e *expected) freeProxy(p proxyState) bool {
	return slices.ContainsFunc(p.Targets, func(t target) bool { return e.free[key{t.Hostname, t.Namespace}] })
}

// serviceAddresses applies row 14 to the addresses that a proxy sees.
func (e *expected) serviceAddresses(p proxyState) map[string][]string {
	out := map[string][]string{}
	for name, addresses := range p.ServiceAddresses {
		out[name] = slices.Clone(addresses)
		for i, s := range e.rec.Services {
			if s.resource() == name {
				replace(out[name], s.AutoAllocatedIPv6, e.Services[i].AutoAllocatedIPv6)
			}
		}
	}
	return out
}

func replace(list []string, from, to string) {
	for i, v := range list {
		if v == from && from != "" {
			list[i] = to
		}
	}
}
