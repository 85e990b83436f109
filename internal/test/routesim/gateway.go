// SPDX-License-Identifier: Apache-2.0

package routesim

import (
	"cmp"
	"slices"
	"strings"
	"time"

	networking "istio.io/api/networking/v1alpha3"
)

// Gateway is an object with its spec.
type Gateway struct {
	Namespace, Name string
	Created         time.Time
	*networking.Gateway
}

// binding is a VirtualService at a server of a Gateway, with the hosts that both
// have.
type binding struct {
	server *networking.Server
	at     where
	of     *VirtualService
	hosts  []string
}

// Router returns the outcome of a request to a plain HTTP port of the gateways with the labels of
// the proxy. ok is false if no server has the port.
func (m *Mesh) Router(p Proxy, r Request) (out Outcome, ok bool) {
	var bindings []binding
	redirects := map[string]bool{}
	for _, g := range m.selecting(p) {
		for _, s := range g.GetServers() {
			if s.GetPort().GetNumber() != r.Port {
				continue
			}
			ok = true
			at := where{mesh: m, proxy: p, gateway: g.Namespace + "/" + g.Name, port: r.Port}
			before := len(bindings)
			for _, v := range at.bound() {
				if names := common(g, s, v); len(names) > 0 && len(v.GetHttp()) > 0 && len(at.rules(v)) > 0 {
					bindings = append(bindings, binding{s, at, v, names})
				}
			}
			if s.GetTls().GetHttpsRedirect() {
				for _, b := range bindings[before:] {
					for _, h := range b.hosts {
						redirects[h] = true
					}
				}
				for _, h := range s.GetHosts() {
					redirects[strings.ToLower(h[strings.IndexByte(h, '/')+1:])] = true
				}
			}
		}
	}
	return serve(bindings, redirects, r), ok
}

func (m *Mesh) selecting(p Proxy) []*Gateway {
	var out []*Gateway
	for _, g := range m.Gateways {
		fits := true
		for k, v := range g.GetSelector() {
			fits = fits && p.Labels[k] == v
		}
		if fits {
			out = append(out, g)
		}
	}
	slices.SortFunc(out, func(a, b *Gateway) int {
		return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Namespace, b.Namespace))
	})
	return out
}

// common returns the hosts that requests to a server can have to be for a
// VirtualService: of two that overlap the narrower one.
func common(g *Gateway, s *networking.Server, v *VirtualService) []string {
	var out []string
	for _, text := range s.GetHosts() {
		namespace, served, scoped := strings.Cut(strings.ToLower(text), "/")
		if !scoped {
			namespace, served = "*", namespace
		}
		if namespace == "." {
			namespace = g.Namespace
		}
		if namespace != "*" && namespace != v.Namespace {
			continue
		}
		for _, h := range hosts(v) {
			switch {
			case covers(served, h):
				out = append(out, h)
			case covers(h, served):
				out = append(out, served)
			}
		}
	}
	return out
}

// serve returns the outcome of a request by the most specific host. Conditions that match some
// requests come before conditions that match all.
func serve(bindings []binding, redirects map[string]bool, r Request) Outcome {
	best := ""
	consider := func(h string) {
		if covers(h, r.host()) && (best == "" || h == r.host() || best != r.host() && len(h) > len(best)) {
			best = h
		}
	}
	for _, b := range bindings {
		for _, h := range b.hosts {
			consider(h)
		}
	}
	for h := range redirects {
		consider(h)
	}
	if best == "" {
		return NoRoute()
	}
	if redirects[best] {
		return Outcome{Status: 301, Location: "https://" + r.Authority + r.Path}
	}
	for _, all := range []bool{false, true} {
		for _, b := range bindings {
			if !slices.Contains(b.hosts, best) {
				continue
			}
			if out, found := b.at.applySome(b.at.rules(b.of), r, all); found {
				return out
			}
		}
	}
	return NoRoute()
}

// applySome is apply for the conditions that every request meets, or for the
// others. Behind the first one that every request meets, nothing counts.
func (w where) applySome(rules []rule, r Request, all bool) (Outcome, bool) {
	for _, rule := range rules {
		for _, condition := range rule.conditions {
			everything := forAll(condition)
			if everything == all && meets(condition, r) {
				return w.do(rule, lastURI(condition), r), true
			}
			if everything {
				return Outcome{}, false
			}
		}
	}
	return Outcome{}, false
}

// forAll reports whether every request meets a condition, so far as Istio sees it:
// by the path alone.
func forAll(condition []*networking.HTTPMatchRequest) bool {
	for _, m := range condition {
		if m.GetMethod() != nil || m.GetScheme() != nil || m.GetAuthority() != nil || len(m.GetHeaders())+len(m.GetWithoutHeaders())+len(m.GetQueryParams()) > 0 {
			return false
		}
	}
	uri := lastURI(condition)
	return uri == nil || uri.GetPrefix() == "/" || uri.GetRegex() == ".*"
}
