// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"slices"
	"strconv"
	"strings"

	networking "istio.io/api/networking/v1alpha3"
)

// t50: a target without port is answered by a listener of its name, for the only
// port of the service or else its first gRPC port.
func (c *comparison) t50() {
	if !c.isGRPC() {
		return
	}
	var out resources
	for _, l := range c.want[listeners] {
		target := name(listeners, l)
		if slices.Contains(c.proxy.Listeners, target) {
			out = append(out, l)
		}
		i := strings.LastIndex(target, ":")
		if i < 0 || !slices.Contains(c.proxy.Listeners, target[:i]) {
			continue
		}
		for _, route := range routesOf(resources{l}) {
			if n, ok := parseCluster(route); ok && strconv.Itoa(int(c.defaultPort(n.host))) == target[i+1:] {
				bare := clone(l)
				bare["name"] = target[:i]
				out = append(out, bare)
			}
		}
	}
	c.want[listeners] = out
}

// defaultPort is the port of targets without one.
func (c *comparison) defaultPort(host string) uint32 {
	if ports := c.portsOf(host, c.proxy); len(ports) == 1 {
		return ports[0]
	}
	for _, s := range c.of(host, c.proxy) {
		for _, p := range s.spec.GetPorts() {
			if strings.HasPrefix(strings.ToUpper(p.GetProtocol()), "GRPC") {
				return p.GetNumber()
			}
		}
	}
	return 0
}

// t51: clients refuse MAGLEV, so they are sent RING_HASH.
func (c *comparison) t51() {
	if !c.isGRPC() {
		return
	}
	for _, want := range c.want[clusters] {
		if want["lbPolicy"] != "MAGLEV" {
			continue
		}
		want["lbPolicy"] = "RING_HASH"
		delete(want, "maglevLbConfig")
		if got := find(clusters, c.got[clusters], name(clusters, want)); got != nil {
			delete(got, "ringHashLbConfig")
		}
	}
}

// t52: services with resolution DNS or NONE are LOGICAL_DNS with one endpoint, and otherwise follow
// t65.
func (c *comparison) t52() {
	if !c.isGRPC() {
		return
	}
	odd := func(n string) bool {
		r := c.resolution(n)
		return r != -1 && r != networking.ServiceEntry_STATIC
	}
	c.remove(clusters, odd)
	c.remove(endpoints, odd)
}

// t53: resources for ports that no gRPC client can use are incidental.
func (c *comparison) t53() {
	if !c.isGRPC() {
		return
	}
	unusable := func(route string) bool {
		n, ok := parseCluster(route)
		for _, s := range c.of(n.host, c.proxy) {
			for _, p := range s.spec.GetPorts() {
				if ok && p.GetNumber() == n.port {
					protocol := strings.ToUpper(p.GetProtocol())
					return !strings.HasPrefix(protocol, "HTTP") && !strings.HasPrefix(protocol, "GRPC") && protocol != "" || protocol == "HTTPS"
				}
			}
		}
		return false
	}
	without := func(l tree) bool { return slices.ContainsFunc(routesOf(resources{l}), unusable) }
	c.want[listeners] = slices.DeleteFunc(c.want[listeners], without)
	c.got[listeners] = slices.DeleteFunc(c.got[listeners], without)
	before := clustersOf(c.got[routes])
	c.remove(routes, unusable)
	after := clustersOf(c.got[routes])
	for _, s := range []section{clusters, endpoints} {
		c.remove(s, func(n string) bool { return slices.Contains(before, n) && !slices.Contains(after, n) })
	}
}

// t54t64: the routes of gRPC clients are compared by meaning, which is the outcome of calls:
// actions that clients do not support fail the matching calls, in any form, ignored fields may be
// left out, and matches have forms that all clients accept.
func (c *comparison) t54t64() {
	if !c.isGRPC() {
		return
	}
	for _, want := range c.want[routes] {
		got := find(routes, c.got[routes], name(routes, want))
		for _, w := range objects(want, "virtualHosts") {
			domains := texts(w, "domains")
			for _, g := range objects(got, "virtualHosts") {
				if slices.Equal(texts(g, "domains"), domains) {
					c.byMeaning(w, g)
				}
			}
		}
	}
}

// byMeaning replaces the routes of two virtual hosts by the outcomes of calls.
func (c *comparison) byMeaning(want, got tree) {
	ours, recorded := objects(got, "routes"), objects(want, "routes")
	wanted, have := make(tree), make(tree)
	for _, call := range samples(slices.Concat(recorded, ours)) {
		w, g := c.outcome(call, recorded), c.outcome(call, ours)
		if w["fails"] != nil && (g["fails"] != nil || !c.reaches(object(g, "route"))) {
			g = w
		}
		key := call.String()
		wanted[key], have[key] = w, g
	}
	want["routes"], got["routes"] = wanted, have
}

// outcome returns the outcome of a call by a list of routes.
func (c *comparison) outcome(call grpcCall, list []tree) tree {
	for _, r := range list {
		if !call.matches(object(r, "match")) {
			continue
		}
		if r["redirect"] != nil || r["directResponse"] != nil {
			return tree{"fails": true}
		}
		out := clone(r)
		abort := object(object(object(out, "typedPerFilterConfig"), "envoy.filters.http.fault"), "abort")
		if object(abort, "percentage")["numerator"] == float64(100) && object(abort, "percentage")["denominator"] == nil {
			out["fails"] = true // so far as one of the cases above is compared with it
		}
		drop(out, "match", "statPrefix", "requestHeadersToAdd", "requestHeadersToRemove", "responseHeadersToAdd", "responseHeadersToRemove")
		delete(object(out, "typedPerFilterConfig"), "envoy.filters.http.cors")
		dropIdleFaults(object(out, "typedPerFilterConfig"))
		dropEmpty(out, "typedPerFilterConfig")
		action := object(out, "route")
		drop(action, "requestMirrorPolicies", "prefixRewrite", "regexRewrite", "hostRewriteLiteral", "autoHostRewrite")
		drop(object(action, "weightedClusters"), "totalWeight") // C-core wants it, others ignore it
		for _, w := range objects(object(action, "weightedClusters"), "clusters") {
			drop(w, "requestHeadersToAdd", "requestHeadersToRemove", "responseHeadersToAdd", "responseHeadersToRemove", "hostRewriteLiteral")
		}
		return out
	}
	return tree{"fails": "no route"}
}

// dropIdleFaults drops faults without a percentage, which are never injected and
// which one of the clients refuses.
func dropIdleFaults(filters tree) {
	fault := object(filters, "envoy.filters.http.fault")
	for _, kind := range []string{"delay", "abort"} {
		if f := object(fault, kind); f["percentage"] == nil {
			delete(fault, kind)
		}
	}
	if len(fault) == 1 { // its type
		delete(filters, "envoy.filters.http.fault")
	}
}

// reaches reports whether calls of an action get to an endpoint of ours.
func (c *comparison) reaches(action tree) bool {
	for _, n := range clustersOf(resources{{"virtualHosts": []any{tree{"routes": []any{tree{"route": action}}}}}}) {
		if a := find(endpoints, c.got[endpoints], n); len(objects(a, "endpoints")) > 0 {
			return true
		}
	}
	return false
}

// t55: clients take the limit from maxStreamDuration.
func (c *comparison) t55() {
	if !c.isGRPC() {
		return
	}
	visit := func(_, _, route tree) { drop(object(route, "route"), "maxGrpcTimeout", "timeout") }
	eachRoute(c.want[routes], visit)
	eachRoute(c.got[routes], visit)
}

// t56: the deprecated fields of certificate providers are incidental.
func (c *comparison) t56() {
	if !c.isGRPC() {
		return
	}
	c.both(clusters, func(r tree) {
		each(r, func(o tree) {
			drop(o, "validationContextCertificateProviderInstance", "tlsCertificateCertificateProviderInstance")
		})
	})
}

// t65: clients are answered for every cluster that their routes name. Routes that no call can take are
// left out, and so are their clusters.
func (c *comparison) t65() {
	if !c.isGRPC() {
		return
	}
	named := clustersOf(c.got[routes])
	for _, s := range []section{clusters, endpoints} {
		c.want[s] = slices.DeleteFunc(c.want[s], func(r tree) bool { return !slices.Contains(named, name(s, r)) })
	}
	for _, n := range named {
		for _, s := range []section{clusters, endpoints} {
			cluster := find(clusters, c.got[clusters], n)
			if find(s, c.want[s], n) != nil || s == endpoints && text(cluster, "type") != "EDS" {
				continue
			}
			if r := find(s, c.got[s], n); r != nil {
				c.want[s] = append(c.want[s], clone(r))
			} else if c.resolution(n) == -1 || c.resolution(n) == networking.ServiceEntry_STATIC {
				c.want[s] = append(c.want[s], tree{"name": n, "clusterName": n, "note": "a route names it, so it must be answered"})
			}
		}
	}
}
