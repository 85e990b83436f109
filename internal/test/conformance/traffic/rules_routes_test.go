// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore"
)

// t02t04: a destination without port leads to the only port of its service, and a
// host that is spelled otherwise to the cluster of its service.
func (c *comparison) t02t04() {
	c.renameClusters(func(n clusterName) clusterName {
		of := c.of(n.host, c.proxy)
		if len(of) == 0 {
			return n
		}
		n.host = of[0].host
		ports := c.portsOf(n.host, c.proxy)
		if !c.isRouter() && len(ports) == 1 && ports[0] != n.port && !c.explicitly(n.host, n.port) {
			n.port = ports[0]
		}
		return n
	})
}

// explicitly reports whether a VirtualService names a port of a host.
func (f *facts) explicitly(host string, port uint32) bool {
	found := false
	for _, config := range f.virtualServices {
		check := func(d *networking.Destination) {
			h := d.GetHost()
			if !strings.Contains(h, ".") {
				h += "." + config.Namespace + ".svc.cluster.local"
			}
			found = found || strings.EqualFold(h, host) && d.GetPort().GetNumber() == port
		}
		for _, rule := range config.Spec.(*networking.VirtualService).GetHttp() {
			check(rule.GetMirror())
			for _, d := range rule.GetRoute() {
				check(d.GetDestination())
			}
			for _, m := range rule.GetMirrors() {
				check(m.GetDestination())
			}
		}
	}
	return found
}

// t03: a service appears on its own ports only.
func (c *comparison) t03() {
	if c.isRouter() {
		return
	}
	for _, config := range c.want[routes] {
		keepObjects(config, "virtualHosts", func(vh tree) bool {
			i := strings.LastIndex(text(vh, "name"), ":")
			if i < 0 {
				return true
			}
			host := text(vh, "name")[:i]
			port, err := strconv.ParseUint(text(vh, "name")[i+1:], 10, 32)
			if err != nil || !c.seen(host) {
				return true
			}
			return slices.Contains(c.portsOf(host, c.proxy), uint32(port))
		})
	}
}

// seen reports whether a proxy has a service, after its Sidecar too: then it has
// clusters of it.
func (c *comparison) seen(host string) bool {
	if len(c.of(host, c.proxy)) == 0 {
		return false
	}
	return c.isGRPC() || slices.ContainsFunc(c.want[clusters], func(r tree) bool {
		n, ok := parseCluster(name(clusters, r))
		return ok && strings.EqualFold(n.host, host)
	})
}

// t04Gateways: hosts of servers that are not in lower case match VirtualServices, but did not in
// the recording: the additional matches are left out.
func (c *comparison) t04Gateways() {
	if !c.isRouter() {
		return
	}
	odd := make(map[string]bool)
	for _, config := range c.gateways {
		for _, server := range config.Spec.(*networking.Gateway).GetServers() {
			for _, host := range server.GetHosts() {
				_, host = cutNamespace(host)
				if lower := strings.ToLower(host); lower != host {
					odd[lower] = true
				}
			}
		}
	}
	if len(odd) == 0 {
		return
	}
	c.both(listeners, func(l tree) {
		each(l, func(o tree) {
			names := texts(o, "serverNames")
			for i := range names {
				names[i] = strings.ToLower(names[i])
			}
			if len(names) > 0 {
				setTexts(o, "serverNames", names)
			}
		})
	})
	c.both(routes, func(config tree) {
		left := slices.DeleteFunc(objects(config, "virtualHosts"), func(vh tree) bool {
			domains := slices.DeleteFunc(texts(vh, "domains"), func(d string) bool {
				return odd[strings.ToLower(d)]
			})
			setTexts(vh, "domains", domains)
			return len(domains) == 0
		})
		if len(left) == 0 {
			left = []tree{{"domains": []any{"*"}}}
		}
		setObjects(config, "virtualHosts", left)
	})
}

func cutNamespace(host string) (namespace, rest string) {
	if namespace, rest, ok := strings.Cut(host, "/"); ok {
		return namespace, rest
	}
	return "", host
}

// t05: a VirtualService with such a redirect is rejected, so that our virtual host has none of its
// routes. See also wantedOutcome.
func (c *comparison) t05() {
	broken := make(map[string]bool)
	for _, config := range c.want[routes] {
		for _, vh := range objects(config, "virtualHosts") {
			for _, r := range objects(vh, "routes") {
				if r["route"] != nil || r["redirect"] != nil || r["directResponse"] != nil || r["nonForwardingAction"] != nil {
					continue
				}
				for _, d := range texts(vh, "domains") {
					broken[text(config, "name")+" "+d] = true
				}
			}
		}
	}
	if len(broken) == 0 {
		return
	}
	c.both(routes, func(config tree) {
		keepObjects(config, "virtualHosts", func(vh tree) bool {
			return !slices.ContainsFunc(texts(vh, "domains"), func(d string) bool { return broken[text(config, "name")+" "+d] })
		})
	})
}

// wantedOutcome applies row T5, and the rows of security, to the outcome of a document.
func wantedOutcome(recorded, ours result) string {
	if recorded.Outcome != outcomeOK {
		return recorded.Outcome
	}
	for _, refused := range []func(result) string{refusedPolicy, refusedTokens, refusedClaims} {
		if refusal := refused(ours); refusal != "" {
			return refusal
		}
	}
	vs, ok := ours.spec.(*networking.VirtualService)
	if !ok {
		return recorded.Outcome
	}
	for _, rule := range vs.GetHttp() {
		switch rule.GetRedirect().GetRedirectCode() {
		case 0, 301, 302, 303, 307, 308:
		default:
			return outcomeInvalid
		}
	}
	return recorded.Outcome
}

// t11: the domain of a server's host is the host without namespace.
func (c *comparison) t11() {
	if !c.isRouter() {
		return
	}
	for _, config := range c.want[routes] {
		taken := make(map[string]bool)
		list := objects(config, "virtualHosts")
		for _, vh := range list {
			for _, d := range texts(vh, "domains") {
				taken[d] = true
			}
		}
		for _, vh := range list {
			var domains []string
			for _, d := range texts(vh, "domains") {
				if namespace, host := cutNamespace(d); namespace == "" {
					domains = append(domains, d)
				} else if !taken[host] {
					taken[host] = true
					domains = append(domains, host)
				}
			}
			setTexts(vh, "domains", domains)
		}
		keepObjects(config, "virtualHosts", func(vh tree) bool { return len(texts(vh, "domains")) > 0 })
	}
}

// t20t21: the names of virtual hosts, and of routes without a name by the user, are incidental, and
// so is the assignment of domains to virtual hosts.
func (c *comparison) t20t21() {
	c.both(routes, func(config tree) {
		var out []tree
		for _, vh := range objects(config, "virtualHosts") {
			delete(vh, "name")
			for _, r := range objects(vh, "routes") {
				if slices.Contains([]string{"default", "allow_any", "block_all"}, text(r, "name")) {
					delete(r, "name")
				}
			}
			for _, d := range texts(vh, "domains") {
				one := clone(vh)
				setTexts(one, "domains", []string{d})
				out = append(out, one)
			}
		}
		slices.SortFunc(out, func(a, b tree) int { return slices.Compare(texts(a, "domains"), texts(b, "domains")) })
		setObjects(config, "virtualHosts", out)
	})
}

// t06t09t10: on gateways equal routes occur once, and routes behind one that
// matches everything can be left out. The same holds behind an empty prefix.
func (c *comparison) t06t09t10() {
	c.both(routes, func(config tree) {
		for _, vh := range objects(config, "virtualHosts") {
			var out []tree
			seen := make(map[string]bool)
			for _, r := range objects(vh, "routes") {
				key := compact(r)
				if c.isRouter() && seen[key] {
					continue
				}
				seen[key] = true
				out = append(out, r)
				if prefix, is := object(r, "match")["prefix"]; matchesAll(r) && (c.isRouter() || is && prefix == "") {
					break
				}
			}
			setObjects(vh, "routes", out)
		}
	})
}

func matchesAll(route tree) bool {
	match := maps.Clone(object(route, "match"))
	prefix, isPrefix := match["prefix"]
	regex := text(object(match, "safeRegex"), "regex")
	drop(match, "prefix", "safeRegex", "caseSensitive")
	return len(match) == 0 && (isPrefix && (prefix == "/" || prefix == "") || regex == ".*")
}

// t12: which of several addresses of a host is a domain, and who has one that
// several hosts have, was arbitrary.
func (c *comparison) t12() {
	owners := make(map[string]map[string]bool)
	arbitrary := make(map[string]bool)
	for _, s := range c.services {
		for _, a := range s.spec.GetAddresses() {
			if owners[a] == nil {
				owners[a] = make(map[string]bool)
			}
			owners[a][s.host] = true
			if len(s.spec.GetAddresses()) > 1 || len(owners[a]) > 1 {
				arbitrary[a] = true
			}
		}
	}
	if len(arbitrary) == 0 {
		return
	}
	c.both(routes, func(config tree) {
		keepObjects(config, "virtualHosts", func(vh tree) bool {
			return !slices.ContainsFunc(texts(vh, "domains"), func(d string) bool { return arbitrary[address(d)] })
		})
	})
	if c.isGRPC() {
		c.both(listeners, func(l tree) {
			if a := text(object(object(l, "address"), "socketAddress"), "address"); arbitrary[a] {
				delete(l, "address")
			}
		})
	}
}

// address returns the address in a domain, or "".
func address(domain string) string {
	if a, err := netip.ParseAddr(strings.Trim(domain, "[]")); err == nil {
		return a.String()
	}
	if a, err := netip.ParseAddrPort(domain); err == nil {
		return a.Addr().String()
	}
	return ""
}

// t13: whether other hosts are tried where the host is chosen by a hash is
// incidental.
func (c *comparison) t13() {
	visit := func(_, _, route tree) {
		if action := object(route, "route"); action["hashPolicy"] != nil {
			delete(object(action, "retryPolicy"), "retryHostPredicate")
		}
	}
	eachRoute(c.want[routes], visit)
	eachRoute(c.got[routes], visit)
}

// t86: an empty retry condition means nothing.
func (c *comparison) t86() {
	eachRoute(c.want[routes], func(_, _, route tree) {
		if policy := object(object(route, "route"), "retryPolicy"); policy != nil {
			policy["retryOn"] = strings.TrimPrefix(text(policy, "retryOn"), ",")
		}
	})
}

// t87: port level settings have a say in the key of a hash also if the destination does not name
// its port.
func (c *comparison) t87() {
	hashed := func(policy *networking.TrafficPolicy, port uint32) bool {
		return slices.ContainsFunc(policy.GetPortLevelSettings(), func(s *networking.TrafficPolicy_PortTrafficPolicy) bool {
			return s.GetPort().GetNumber() == port && s.GetLoadBalancer().GetConsistentHash() != nil
		})
	}
	implicit := func(cluster string) bool {
		n, ok := parseCluster(cluster)
		return ok && !c.explicitly(n.host, n.port) && slices.ContainsFunc(c.rules, func(r *configstore.Config) bool {
			spec := r.Spec.(*networking.DestinationRule)
			return hashed(spec.GetTrafficPolicy(), n.port) || slices.ContainsFunc(spec.GetSubsets(), func(s *networking.Subset) bool {
				return s.GetName() == n.subset && hashed(s.GetTrafficPolicy(), n.port)
			})
		})
	}
	for _, list := range []resources{c.want[routes], c.got[routes]} {
		eachRoute(list, func(_, _, route tree) {
			one := tree{"virtualHosts": []any{tree{"routes": []any{route}}}}
			if action := object(route, "route"); slices.ContainsFunc(clustersOf(resources{one}), implicit) {
				drop(action, "hashPolicy")
				drop(object(action, "retryPolicy"), "retryHostPredicate")
			}
		})
	}
}

// t64: header matches mean the same in their old and new forms.
func (c *comparison) t64() {
	visit := func(_, _, route tree) {
		for _, h := range objects(object(route, "match"), "headers") {
			for old, now := range map[string]string{
				"exactMatch": "exact", "prefixMatch": "prefix", "suffixMatch": "suffix", "containsMatch": "contains", "safeRegexMatch": "safeRegex",
			} {
				if v, ok := h[old]; ok {
					delete(h, old)
					h["stringMatch"] = tree{now: v}
				}
			}
		}
	}
	eachRoute(c.want[routes], visit)
	eachRoute(c.got[routes], visit)
}
