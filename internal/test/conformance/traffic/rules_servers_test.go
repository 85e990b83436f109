// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"fmt"
	"maps"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"

	networking "istio.io/api/networking/v1alpha3"
	security "istio.io/api/security/v1beta1"

	"github.com/pilotkit/pilotkit/configstore"
)

const (
	inboundPrefix = "xds.istio.io/grpc/lds/inbound/"
	denyRBAC      = httpRBAC + ".DENY"
)

// servers applies the rows about gRPC servers to their listeners, before RBAC is compared by
// meaning.
func (c *comparison) servers() {
	inbound := func(list resources, change func(tree)) {
		for _, l := range list {
			if strings.HasPrefix(name(listeners, l), inboundPrefix) {
				change(l)
			}
		}
	}
	inbound(c.want[listeners], func(l tree) {
		each(l, func(o tree) {
			if o["httpFilters"] != nil {
				c.serverFilters(o)
			}
		})
	})
	c.both(listeners, func(l tree) {
		if !strings.HasPrefix(name(listeners, l), inboundPrefix) {
			return
		}
		each(l, withoutServerNames)
		each(l, plainHeader)
	})
	inbound(c.got[listeners], c.withoutOurs)
}

// withoutServerNames removes names that mean nothing (README.md, section 4, S18).
func withoutServerNames(o tree) {
	if strings.Contains(text(object(o, "typedConfig"), "@type"), "HttpConnectionManager") {
		delete(o, "name")
	}
	if hosts := objects(o, "virtualHosts"); hosts != nil {
		for _, vh := range hosts {
			delete(vh, "name")
		}
	}
}

// serverFilters converts the recorded filters of a server to the expected ones.
func (c *comparison) serverFilters(manager tree) {
	filters := objects(manager, "httpFilters")
	byName := make(map[string]tree)
	for _, f := range filters {
		byName[text(f, "name")] = f
	}
	var out []tree
	for _, action := range []security.AuthorizationPolicy_Action{security.AuthorizationPolicy_DENY, security.AuthorizationPolicy_ALLOW} {
		at := map[security.AuthorizationPolicy_Action]string{security.AuthorizationPolicy_DENY: denyRBAC, security.AuthorizationPolicy_ALLOW: httpRBAC}[action]
		if f := c.serverFilter(byName[at], at, action); f != nil {
			out = append(out, f)
		}
	}
	setObjects(manager, "httpFilters", append(out, filters[len(filters)-1]))
}

// serverFilter returns the expected filter of an action from the recorded one, which may be nil. It
// returns nil if there is none.
func (c *comparison) serverFilter(recorded tree, at string, action security.AuthorizationPolicy_Action) tree {
	policies := object(object(object(recorded, "typedConfig"), "rules"), "policies")
	want := make(tree)
	some := false
	for _, p := range c.policiesOfServer() {
		spec := p.Spec.(*security.AuthorizationPolicy)
		if dryRun, _ := strconv.ParseBool(p.Annotations["istio.io/dry-run"]); dryRun || spec.GetAction() != action {
			continue // S3
		}
		some = true
		for i := range spec.GetRules() {
			key := fmt.Sprintf("%s-%s-%d", p.Namespace, p.Name, i)
			if policy, ok := policies[key].(tree); ok && c.unique(key) && (action != security.AuthorizationPolicy_ALLOW || !reserved(policy)) {
				want[key] = c.serverPolicy(clone(policy))
			}
		}
		if len(spec.GetRules()) == 0 {
			want["nothing"] = neverMatches() // S1
		}
	}
	if !some && (action != security.AuthorizationPolicy_DENY || !c.hasCustom()) {
		return nil
	}
	if len(want) == 0 && action == security.AuthorizationPolicy_ALLOW {
		want["nothing"] = neverMatches()
	}
	kind := "type.googleapis.com/envoy.extensions.filters.http.rbac.v3.RBAC"
	return tree{"name": at, "typedConfig": tree{"@type": kind, "rules": tree{"action": action.String(), "policies": want}}}
}

func neverMatches() tree {
	return tree{
		"permissions": []any{tree{"notRule": tree{"any": true}}}, "principals": []any{tree{"notId": tree{"any": true}}},
	}
}

// unique reports whether only one rule has a key, so that the recording has it (S2).
func (c *comparison) unique(key string) bool {
	n := 0
	for _, p := range c.policies {
		for i := range p.Spec.(*security.AuthorizationPolicy).GetRules() {
			if fmt.Sprintf("%s-%s-%d", p.Namespace, p.Name, i) == key {
				n++
			}
		}
	}
	return n == 1
}

// withoutOurs removes parts of our filters that the recording cannot have: the rules of CUSTOM
// policies, which are required (S4), and rules with a shared key (S2). A set of rules that never
// matches has no meaning among others.
func (c *comparison) withoutOurs(l tree) {
	eachServerRules(l, func(rules tree) {
		policies := object(rules, "policies")
		for _, p := range c.policiesOfServer() {
			spec := p.Spec.(*security.AuthorizationPolicy)
			for i := range spec.GetRules() {
				ours := fmt.Sprintf("ns[%s]-policy[%s]-rule[%d]", p.Namespace, p.Name, i)
				custom := spec.GetAction() == security.AuthorizationPolicy_CUSTOM
				denies := text(rules, "action") == "DENY"
				if custom && denies && policies[ours] == nil {
					policies["missing"] = tree{"missing": ours}
				}
				if custom && denies || !c.unique(fmt.Sprintf("%s-%s-%d", p.Namespace, p.Name, i)) {
					delete(policies, ours)
				}
			}
		}
	})
}

func eachServerRules(l tree, visit func(rules tree)) {
	each(l, func(f tree) {
		if n := text(f, "name"); n == denyRBAC || n == httpRBAC {
			visit(object(object(f, "typedConfig"), "rules"))
		}
	})
}

// hasCustom reports whether a CUSTOM policy is for the server.
func (c *comparison) hasCustom() bool {
	return slices.ContainsFunc(c.policiesOfServer(), func(p *configstore.Config) bool {
		return p.Spec.(*security.AuthorizationPolicy).GetAction() == security.AuthorizationPolicy_CUSTOM
	})
}

// policiesOfServer returns the policies that are for the proxy, by the labels of its workload.
func (c *comparison) policiesOfServer() (out []*configstore.Config) {
	sets := c.labelsOfServer()
	for _, p := range c.policies {
		spec := p.Spec.(*security.AuthorizationPolicy)
		if p.Namespace != c.mesh.GetRootNamespace() && p.Namespace != cmpRoot(c) && p.Namespace != c.proxy.Namespace ||
			len(spec.GetTargetRefs()) > 0 || spec.GetTargetRef() != nil {
			continue
		}
		which := slices.IndexFunc(sets, func(labels map[string]string) bool { return subset(spec.GetSelector().GetMatchLabels(), labels) })
		if which == 0 || which > 0 && spec.GetAction() != security.AuthorizationPolicy_ALLOW { // S94
			out = append(out, p)
		}
	}
	return out
}

// cmpRoot is the root namespace where the mesh does not say one.
func cmpRoot(c *comparison) string {
	if root := c.mesh.GetRootNamespace(); root != "" {
		return root
	}
	return "istio-system"
}

func subset(of, labels map[string]string) bool {
	for k, v := range of {
		if have, ok := labels[k]; !ok || have != v {
			return false
		}
	}
	return true
}

// labelsOfServer returns the labels of the workloads at the proxy's address of services of its namespace, of the oldest
// service first.
func (c *comparison) labelsOfServer() (out []map[string]string) {
	add := func(labels map[string]string) {
		labels = maps.Clone(labels)
		if labels == nil {
			labels = make(map[string]string)
		}
		if labels["topology.istio.io/cluster"] == "" {
			labels["topology.istio.io/cluster"] = clusterID
		}
		if !slices.ContainsFunc(out, func(l map[string]string) bool { return maps.Equal(l, labels) }) {
			out = append(out, labels)
		}
	}
	for _, s := range c.services {
		if s.entry.Namespace != c.proxy.Namespace {
			continue
		}
		for _, e := range s.spec.GetEndpoints() {
			if e.GetAddress() == c.proxy.IP {
				add(e.GetLabels())
			}
		}
		if selector := s.spec.GetWorkloadSelector(); selector != nil {
			for _, w := range c.workloads {
				e := w.Spec.(*networking.WorkloadEntry)
				if w.Namespace == s.entry.Namespace && e.GetAddress() == c.proxy.IP && subset(selector.GetLabels(), e.GetLabels()) {
					add(e.GetLabels())
				}
			}
		}
	}
	return out
}

// reserved reports whether a policy looks at headers that servers do not show (S8).
func reserved(policy tree) bool {
	found := false
	each(policy, func(o tree) {
		found = found || isReserved(object(o, "header"))
	})
	return found
}

func isReserved(header tree) bool {
	n := strings.ToLower(text(header, "name"))
	return n == ":scheme" || strings.HasPrefix(n, "grpc-")
}

// serverPolicy converts a recorded policy to the expected one: without attributes that servers do
// not have (S8), with names in lower case (S19), empty ones (S98), templates as expressions (S7),
// all trust domains (S6), and nothing in place of metadata and server names (S9, S15).
func (c *comparison) serverPolicy(policy tree) tree {
	each(policy, func(o tree) {
		for _, set := range []string{"ids", "rules"} {
			keepObjects(o, set, func(m tree) bool { return !onlyReserved(m) })
		}
		if and, ok := o["andIds"].(tree); ok && and["ids"] == nil {
			delete(o, "andIds")
			o["any"] = true
		}
		if h := object(o, "header"); h != nil {
			if n := strings.ToLower(text(h, "name")); n == "host" {
				h["name"] = ":authority"
			} else {
				h["name"] = n
			}
			s98(h)
		}
		for _, field := range []string{"directRemoteIp", "remoteIp", "destinationIp"} {
			maskRange(object(o, field))
		}
		if t := object(o, "uriTemplate"); t != nil {
			delete(o, "uriTemplate")
			o["urlPath"] = tree{"path": tree{"safeRegex": tree{"regex": templateRegex(text(object(t, "typedConfig"), "pathTemplate"))}}}
		}
	})
	each(policy, c.s54)
	each(policy, c.s52)
	each(policy, c.s06)
	for _, m := range objects(policy, "permissions") {
		each(m, func(o tree) { unknownToServers(o, "notRule") })
	}
	for _, m := range objects(policy, "principals") {
		each(m, func(o tree) { unknownToServers(o, "notId") })
	}
	return policy
}

// unknownToServers says without metadata and server names that they never match: not all servers
// heed them. A server name is empty (S9, S15).
func unknownToServers(o tree, not string) {
	sni := object(o, "requestedServerName")
	switch {
	case sni != nil && compact(sni) == `{"exact":""}`:
		delete(o, "requestedServerName")
		o["any"] = true
	case sni != nil || o["metadata"] != nil:
		drop(o, "requestedServerName", "metadata")
		o[not] = tree{"any": true}
	}
}

// maskRange makes the address of a range its first one, as grpc-js wants it.
func maskRange(r tree) {
	if r == nil {
		return
	}
	bits, _ := r["prefixLen"].(float64)
	if a, err := netip.ParseAddr(text(r, "addressPrefix")); err == nil {
		if p, err := a.Prefix(int(bits)); err == nil {
			r["addressPrefix"] = p.Addr().String()
		}
	}
}

// onlyReserved reports whether a matcher is of nothing but headers that servers do not show.
func onlyReserved(m tree) bool {
	if h := object(m, "header"); h != nil {
		return isReserved(h)
	}
	for _, op := range []string{"orIds", "andIds"} {
		if ids := objects(object(m, op), "ids"); object(m, op) != nil {
			return !slices.ContainsFunc(ids, func(o tree) bool { return !onlyReserved(o) })
		}
	}
	if inner := object(m, "notId"); inner != nil {
		return onlyReserved(inner)
	}
	return false
}

func templateRegex(template string) string {
	var out strings.Builder
	for part := range strings.SplitSeq(template, "**") {
		if out.Len() > 0 {
			out.WriteString(".*")
		}
		for i, p := range strings.Split(part, "*") {
			if i > 0 {
				out.WriteString("[^/]+")
			}
			out.WriteString(regexp.QuoteMeta(p))
		}
	}
	return out.String()
}

// s06: principals and trust domains of the mesh match in all its trust domains.
func (c *comparison) s06(o tree) {
	principal := object(object(o, "authenticated"), "principalName")
	for _, kind := range []string{"exact", "prefix", "suffix"} {
		value, ok := strings.CutPrefix(text(principal, kind), "spiffe://")
		domain, path, _ := strings.Cut(value, "/")
		all := append([]string{c.trustDomain()}, c.mesh.GetTrustDomainAliases()...)
		mine := slices.Contains(all, domain)
		isPrincipal := strings.Count(value, "/") == 4
		isDomain := kind == "prefix" && path == "" && strings.HasSuffix(value, "/")
		matches := isPrincipal && (mine || domain == "cluster.local") || isDomain && mine
		if !ok || !matches {
			continue
		}
		var ids []any
		for _, d := range all {
			ids = append(ids, tree{"authenticated": tree{"principalName": tree{kind: "spiffe://" + d + "/" + path}}})
		}
		delete(o, "authenticated")
		o["orIds"] = tree{"ids": ids}
		return
	}
}

func (c *comparison) trustDomain() string {
	if d := c.mesh.GetTrustDomain(); d != "" {
		return d
	}
	return "cluster.local"
}

// s98: a header may be there and empty, unless it is one that every request has.
func s98(header tree) {
	if header["presentMatch"] == true && !strings.HasPrefix(text(header, "name"), ":") {
		delete(header, "presentMatch")
		header["safeRegexMatch"] = tree{"regex": ".*"}
	}
}

// plainHeader brings a match of a header into the fields that all servers know.
func plainHeader(o tree) {
	m := object(object(o, "header"), "stringMatch")
	if m == nil {
		return
	}
	h := object(o, "header")
	delete(h, "stringMatch")
	ignoreCase, _ := m["ignoreCase"].(bool)
	for kind, to := range map[string]string{"exact": "exactMatch", "prefix": "prefixMatch", "suffix": "suffixMatch"} {
		value, ok := m[kind].(string)
		switch quoted := regexp.QuoteMeta(value); {
		case !ok:
		case !ignoreCase:
			h[to] = value
		case kind == "prefix":
			h["safeRegexMatch"] = tree{"regex": "(?i)" + quoted + ".*"}
		case kind == "suffix":
			h["safeRegexMatch"] = tree{"regex": "(?i).*" + quoted}
		default:
			h["safeRegexMatch"] = tree{"regex": "(?i)" + quoted}
		}
	}
	if r := object(m, "safeRegex"); r != nil {
		h["safeRegexMatch"] = r
	}
}
