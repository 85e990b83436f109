// SPDX-License-Identifier: Apache-2.0

package routesim

import (
	"cmp"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1alpha3"
)

// rule is an HTTP rule in effect. A request is for it if all matches of one of the
// conditions hold.
type rule struct {
	*networking.HTTPRoute
	namespace  string
	conditions [][]*networking.HTTPMatchRequest
}

// rules returns the rules of a VirtualService that requests here can be for.
func (w where) rules(c *VirtualService) []rule {
	var out []rule
	for _, r := range c.GetHttp() {
		if r.GetDelegate() == nil {
			if conditions := w.possible(c.Namespace, r.GetMatch()); len(conditions) > 0 {
				out = append(out, rule{r, c.Namespace, conditions})
			}
			continue
		}
		out = append(out, w.delegated(c, r)...)
	}
	return out
}

// possible returns the matches that say nothing against the proxy and the port; a
// rule without matches has one that always holds.
func (w where) possible(namespace string, matches []*networking.HTTPMatchRequest) [][]*networking.HTTPMatchRequest {
	if len(matches) == 0 {
		return [][]*networking.HTTPMatchRequest{nil}
	}
	var out [][]*networking.HTTPMatchRequest
	for _, m := range matches {
		if w.allows(namespace, m) {
			out = append(out, []*networking.HTTPMatchRequest{m})
		}
	}
	return out
}

func (w where) allows(namespace string, m *networking.HTTPMatchRequest) bool {
	if m.GetPort() != 0 && m.GetPort() != w.port {
		return false
	}
	if len(m.GetGateways()) > 0 {
		return slices.ContainsFunc(m.GetGateways(), func(n string) bool { return gatewayName(n, namespace) == w.gateway })
	}
	for k, v := range m.GetSourceLabels() {
		if have, ok := w.proxy.Labels[k]; !ok || have != v {
			return false
		}
	}
	return m.GetSourceNamespace() == "" || m.GetSourceNamespace() == w.proxy.Namespace
}

// delegated returns the rules of a root's delegate: a request is for one if it is
// for the root's and for the delegate's.
func (w where) delegated(root *VirtualService, r *networking.HTTPRoute) []rule {
	to := w.mesh.delegate(root, r)
	if to == nil {
		return nil
	}
	var out []rule
	for _, d := range to.GetHttp() {
		joined := rule{joinRules(root.Namespace, to.Namespace, r, d), root.Namespace, nil}
		pairs, ok := matchPairs(r.GetMatch(), d.GetMatch())
		if d.GetDelegate() != nil || !ok {
			continue
		}
		for _, pair := range pairs {
			if w.pairAllowed(root.Namespace, to.Namespace, pair) {
				joined.conditions = append(joined.conditions, slices.DeleteFunc(slices.Clone(pair[:]), func(m *networking.HTTPMatchRequest) bool { return m == nil }))
			}
		}
		if len(joined.conditions) > 0 {
			out = append(out, joined)
		}
	}
	return out
}

// delegate returns the delegate that a rule of a root leads to; nil for none.
func (m *Mesh) delegate(root *VirtualService, r *networking.HTTPRoute) *VirtualService {
	namespace := cmp.Or(r.GetDelegate().GetNamespace(), root.Namespace)
	i := slices.IndexFunc(m.VirtualServices, func(c *VirtualService) bool {
		return c.Namespace == namespace && c.Name == r.GetDelegate().GetName() && len(c.GetHosts()) == 0
	})
	if r.GetDelegate() == nil || i < 0 || !exported(m.VirtualServices[i].GetExportTo(), namespace, root.Namespace) {
		return nil
	}
	return m.VirtualServices[i]
}

// pairAllowed: if one of the two names gateways, what both say of the source is void.
func (w where) pairAllowed(root, namespace string, pair [2]*networking.HTTPMatchRequest) bool {
	r, d := proto.CloneOf(pair[0]), proto.CloneOf(pair[1])
	if len(r.GetGateways()) > 0 || len(d.GetGateways()) > 0 {
		for _, m := range []*networking.HTTPMatchRequest{r, d} {
			if m != nil {
				m.SourceLabels, m.SourceNamespace = nil, ""
			}
		}
	}
	return (r == nil || w.allows(root, r)) && (d == nil || w.allows(namespace, d))
}

// matchPairs pairs each match of a delegate with the matches of the root that it can be joined
// with. ok is false if a match of the delegate has no partner.
func matchPairs(root, delegate []*networking.HTTPMatchRequest) (out [][2]*networking.HTTPMatchRequest, ok bool) {
	if len(root) == 0 {
		root = []*networking.HTTPMatchRequest{nil}
	}
	if len(delegate) == 0 {
		delegate = []*networking.HTTPMatchRequest{nil}
	}
	for _, d := range delegate {
		before := len(out)
		for _, r := range root {
			if r == nil || d == nil || joinable(r, d) {
				out = append(out, [2]*networking.HTTPMatchRequest{r, d})
			}
		}
		if len(out) == before {
			return nil, false
		}
	}
	return out, true
}

func joinable(r, d *networking.HTTPMatchRequest) bool {
	type values = map[string]*networking.StringMatch
	of := func(m *networking.HTTPMatchRequest) values {
		out := values{"uri": m.GetUri(), "scheme": m.GetScheme(), "method": m.GetMethod(), "authority": m.GetAuthority()}
		for kind, more := range map[string]values{"h ": m.GetHeaders(), "w ": m.GetWithoutHeaders(), "q ": m.GetQueryParams()} {
			for k, v := range more {
				out[kind+k] = v
			}
		}
		return out
	}
	inRoot := of(r)
	for k, v := range of(d) {
		if have := inRoot[k]; have != nil && v != nil && !narrower(have, v) && (!strings.HasPrefix(k, "w ") || !narrower(v, have)) {
			return false
		}
	}
	for k, v := range d.GetSourceLabels() {
		if have, ok := r.GetSourceLabels()[k]; ok && have != v {
			return false
		}
	}
	for _, g := range d.GetGateways() {
		if len(r.GetGateways()) > 0 && !slices.Contains(r.GetGateways(), g) {
			return false
		}
	}
	differ := r.GetPort() != 0 && d.GetPort() != 0 && r.GetPort() != d.GetPort() ||
		r.GetSourceNamespace() != "" && d.GetSourceNamespace() != "" && r.GetSourceNamespace() != d.GetSourceNamespace()
	return !differ && r.GetIgnoreUriCase() == d.GetIgnoreUriCase()
}

// narrower reports whether d is within r: equal values, values below a prefix, and any value within
// presence.
func narrower(r, d *networking.StringMatch) bool {
	_, exactly := d.GetMatchType().(*networking.StringMatch_Exact)
	_, below := d.GetMatchType().(*networking.StringMatch_Prefix)
	switch r := r.GetMatchType().(type) {
	case nil:
		return d.GetMatchType() == nil
	case *networking.StringMatch_Exact:
		return exactly && d.GetExact() == r.Exact
	case *networking.StringMatch_Prefix:
		return exactly && strings.HasPrefix(d.GetExact(), r.Prefix) || below && strings.HasPrefix(d.GetPrefix(), r.Prefix)
	}
	return false
}

// joinRules adds the settings of the root's rule that a delegate's rule lacks.
func joinRules(root, namespace string, r, d *networking.HTTPRoute) *networking.HTTPRoute {
	out := proto.CloneOf(d)
	for _, dest := range out.GetRoute() {
		dest.Destination.Host = fullName(dest.GetDestination().GetHost(), namespace)
	}
	inherited := proto.CloneOf(r)
	if m := out.GetMirror(); m != nil {
		m.Host = fullName(m.GetHost(), namespace)
	} else if m := inherited.GetMirror(); m != nil {
		m.Host = fullName(m.GetHost(), root)
	}
	fill(out, inherited)
	return out
}

func fill(out, from *networking.HTTPRoute) {
	if out.Rewrite == nil {
		out.Rewrite = from.Rewrite
	}
	if out.Timeout == nil {
		out.Timeout = from.Timeout
	}
	if out.Retries == nil {
		out.Retries = from.Retries
	}
	if out.Fault == nil {
		out.Fault = from.Fault
	}
	if out.Mirror == nil {
		out.Mirror = from.Mirror
	}
	if out.MirrorPercentage == nil {
		out.MirrorPercentage = from.MirrorPercentage
	}
	if out.Headers == nil {
		out.Headers = from.Headers
	}
}
