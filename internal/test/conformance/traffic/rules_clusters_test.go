// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"slices"
	"strings"

	networking "istio.io/api/networking/v1alpha3"
)

// t30: the lowest version of TLS in clusters is incidental where the mesh says one.
func (c *comparison) t30() {
	if c.mesh.GetTlsDefaults().GetMinProtocolVersion() == 0 {
		return
	}
	c.both(clusters, func(r tree) {
		each(r, func(o tree) {
			if params := object(o, "tlsParams"); params != nil {
				drop(params, "tlsMinimumProtocolVersion", "tlsMaximumProtocolVersion")
			}
		})
	})
}

// t31: load assignments have priorities wherever the cluster has outlier detection,
// but did not where it comes from the mesh: they are compared without.
func (c *comparison) t31() {
	if c.mesh.GetDefaultTrafficPolicy().GetOutlierDetection() == nil {
		return
	}
	for _, want := range c.want[endpoints] {
		got := find(endpoints, c.got[endpoints], name(endpoints, want))
		if got == nil || slices.ContainsFunc(objects(want, "endpoints"), func(l tree) bool { return l["priority"] != nil }) {
			continue
		}
		merged := make(map[string]tree)
		var out []tree
		for _, l := range objects(got, "endpoints") {
			delete(l, "priority")
			where := compact(object(l, "locality"))
			first := merged[where]
			if first == nil {
				merged[where] = l
				out = append(out, l)
				continue
			}
			setObjects(first, "lbEndpoints", append(objects(first, "lbEndpoints"), objects(l, "lbEndpoints")...))
			first["loadBalancingWeight"] = weight(first) + weight(l)
		}
		setObjects(got, "endpoints", out)
	}
}

func weight(o tree) float64 {
	w, _ := o["loadBalancingWeight"].(float64)
	return w
}

// t33: localities without endpoints may be left out.
func (c *comparison) t33() {
	c.both(endpoints, withoutEmptyLocalities)
	c.both(clusters, func(r tree) { withoutEmptyLocalities(object(r, "loadAssignment")) })
}

func withoutEmptyLocalities(assignment tree) {
	keepObjects(assignment, "endpoints", func(l tree) bool { return len(objects(l, "lbEndpoints")) > 0 })
}

// t36: an address occurs once in a locality.
func (c *comparison) t36() {
	for _, r := range c.want[endpoints] {
		withoutDuplicates(r)
	}
	for _, r := range c.want[clusters] {
		withoutDuplicates(object(r, "loadAssignment"))
	}
}

func withoutDuplicates(assignment tree) {
	for _, l := range objects(assignment, "endpoints") {
		seen := make(map[string]bool)
		var sum, left float64
		var out []tree
		for _, e := range objects(l, "lbEndpoints") {
			sum += weight(e)
			if key := compact(object(e, "endpoint")); !seen[key] {
				seen[key] = true
				left += weight(e)
				out = append(out, e)
			}
		}
		setObjects(l, "lbEndpoints", out)
		if left != sum && weight(l) == sum {
			l["loadBalancingWeight"] = left
		}
	}
}

// t37: of SNI clusters only those are essential that a filter chain uses.
func (c *comparison) t37() {
	if !c.isRouter() {
		return
	}
	used := make(map[string]bool)
	for _, l := range c.want[listeners] {
		each(l, func(o tree) { used[text(o, "cluster")] = true })
	}
	for _, s := range []section{clusters, endpoints} {
		c.remove(s, func(n string) bool { return strings.HasPrefix(n, "outbound_.") && !used[n] })
	}
}

// t38: the configuration of gateways for services with resolution NONE is incidental.
func (c *comparison) t38() {
	if !c.isRouter() {
		return
	}
	for _, s := range []section{clusters, endpoints} {
		c.remove(s, func(n string) bool { return c.resolution(n) == networking.ServiceEntry_NONE })
	}
}

// resolution returns that of the service of a cluster, -1 if there is none.
func (c *comparison) resolution(cluster string) networking.ServiceEntry_Resolution {
	n, ok := parseCluster(cluster)
	if of := c.of(n.host, c.proxy); ok && len(of) > 0 {
		return of[0].spec.GetResolution()
	}
	return -1
}

// t40: the runtime key of the aggression is incidental.
func (c *comparison) t40() {
	c.both(clusters, func(r tree) {
		each(r, func(o tree) { delete(object(o, "aggression"), "runtimeKey") })
	})
}

// t66: a cluster need not choose between sockets if its endpoints can select only the one for plain
// text. The cluster then has that one, as a default or as the only one.
func (c *comparison) t66() {
	for _, want := range c.want[clusters] {
		got, n := find(clusters, c.got[clusters], name(clusters, want)), 0
		matches := objects(want, "transportSocketMatches")
		if got == nil || got["transportSocketMatches"] != nil || len(matches) == 0 || c.someMutual(name(clusters, want)) {
			continue
		}
		for _, m := range matches {
			if text(object(m, "match"), "tlsMode") != "istio" {
				want["transportSocket"], n = m["transportSocket"], n+1
			}
		}
		if n != 1 {
			delete(want, "transportSocket")
			continue
		}
		delete(want, "transportSocketMatches")
		if text(object(want, "transportSocket"), "name") == "envoy.transport_sockets.raw_buffer" {
			delete(want, "transportSocket")
		}
	}
}

// someMutual reports whether an endpoint of the service of a cluster takes mutual TLS, as
// recorded or as sent by us.
func (c *comparison) someMutual(cluster string) bool {
	of, _ := parseCluster(cluster)
	found := false
	look := func(s section) func(tree) bool {
		return func(r tree) bool {
			if n, ok := parseCluster(name(s, r)); ok && strings.EqualFold(n.host, of.host) {
				assignment := r
				if s == clusters {
					assignment = object(r, "loadAssignment")
				}
				each(assignment, func(o tree) {
					found = found || text(object(o, "envoy.transport_socket_match"), "tlsMode") == "istio"
				})
			}
			return found
		}
	}
	for _, s := range []section{clusters, endpoints} {
		_ = slices.ContainsFunc(c.want[s], look(s)) || slices.ContainsFunc(c.got[s], look(s))
	}
	return found
}

// t80: exportTo hides a service from its own namespace, too.
func (c *comparison) t80() {
	hidden := func(cluster string) bool {
		n, ok := parseCluster(cluster)
		return ok && len(c.of(n.host, c.proxy)) == 0 && slices.ContainsFunc(c.services, func(s hostService) bool {
			return strings.EqualFold(s.host, n.host) && s.entry.Namespace == c.proxy.Namespace
		})
	}
	for _, s := range []section{clusters, endpoints} {
		c.want[s] = slices.DeleteFunc(c.want[s], func(r tree) bool { return hidden(name(s, r)) })
	}
	c.want[listeners] = slices.DeleteFunc(c.want[listeners], func(l tree) bool { return slices.ContainsFunc(routesOf(resources{l}), hidden) })
	for _, list := range []resources{c.want[routes], c.got[routes]} {
		eachRoute(list, func(_, _, route tree) {
			if action := object(route, "route"); hidden(text(action, "cluster")) { // without a service there is no DestinationRule
				drop(action, "hashPolicy")
				drop(object(action, "retryPolicy"), "retryHostPredicate")
			}
		})
	}
}

// t62: clusters that a Sidecar's listener with port makes unreachable may be left
// out.
func (c *comparison) t62() {
	if c.proxy.Kind != kindSidecar {
		return
	}
	ports := make(map[uint32]bool)
	for _, config := range c.sidecars {
		for _, l := range config.Spec.(*networking.Sidecar).GetEgress() {
			ports[l.GetPort().GetNumber()] = true
		}
	}
	delete(ports, 0)
	used := clustersOf(c.want[routes])
	for _, s := range []section{clusters, endpoints} {
		c.want[s] = slices.DeleteFunc(c.want[s], func(r tree) bool {
			n, ok := parseCluster(name(s, r))
			return ok && ports[n.port] && !slices.Contains(used, name(s, r)) && find(s, c.got[s], name(s, r)) == nil
		})
	}
}
