// SPDX-License-Identifier: Apache-2.0

package ingress

import (
	"cmp"
	"fmt"
	"strings"

	networking "istio.io/api/networking/v1alpha3"
	networkingv1 "k8s.io/api/networking/v1"

	"github.com/pilotkit/pilotkit/configstore/istio"
)

// route is one path of a host.
type route struct {
	rule *networking.HTTPRoute
	// length is the length of the path: 0 for everything, and fallback for a default backend.
	length int
	exact  bool
}

// fallback is the length of the path of a default backend, which comes last.
const fallback = -1

// compare orders the routes of a host: longer paths first, and of equal lengths exact paths first.
// Equal routes stay in the order of the Ingresses and of their rules.
func (r route) compare(s route) int {
	rank := func(exact bool) int {
		if exact {
			return 0
		}
		return 1
	}
	return cmp.Or(cmp.Compare(s.length, r.length), cmp.Compare(rank(r.exact), rank(s.exact)))
}

// routes returns the routes of an Ingress by host. A host without valid routes has none.
func (c *Converter) routes(i *ingress, found *findings) map[string][]route {
	out := map[string][]route{}
	spec := &i.object.Spec
	var last *networking.HTTPRoute
	if spec.DefaultBackend != nil {
		if d := c.destination(i.key.Namespace, spec.DefaultBackend, "spec.defaultBackend", found); d != nil {
			last = routeTo(d, nil)
			out[everyHost] = nil
		}
	}
	for r := range spec.Rules {
		rule := &spec.Rules[r]
		if rule.HTTP == nil && last == nil {
			continue
		}
		host := cmp.Or(rule.Host, everyHost)
		routes := out[host]
		for p, path := range pathsOf(rule.HTTP) {
			field := fmt.Sprintf("spec.rules[%d].http.paths[%d]", r, p)
			to := c.destination(i.key.Namespace, &path.Backend, field+".backend", found)
			if to == nil {
				continue
			}
			match := matchOf(&path)
			next := route{rule: routeTo(to, match), length: len(match.GetExact()) + len(match.GetPrefix())}
			_, next.exact = match.GetMatchType().(*networking.StringMatch_Exact)
			if routable(host, next.rule, field, found) {
				routes = append(routes, next)
			}
		}
		out[host] = routes
	}
	if last != nil {
		for host := range out {
			if routable(host, last, "spec.defaultBackend", found) {
				out[host] = append(out[host], route{rule: last, length: fallback})
			}
		}
	}
	return out
}

// routable reports whether a VirtualService with this route is valid, so that an invalid route does
// not invalidate the others.
func routable(host string, rule *networking.HTTPRoute, field string, found *findings) bool {
	return found.valid(field, istio.VirtualService, &networking.VirtualService{
		Hosts: []string{host}, Gateways: []string{"gateway"}, Http: []*networking.HTTPRoute{rule},
	})
}

// routeTo returns the route to a destination; a nil match matches everything.
func routeTo(d *networking.Destination, match *networking.StringMatch) *networking.HTTPRoute {
	out := &networking.HTTPRoute{Route: []*networking.HTTPRouteDestination{{Destination: d, Weight: 100}}}
	if match != nil {
		out.Match = []*networking.HTTPMatchRequest{{Uri: match}}
	}
	return out
}

// destination returns the destination of a backend, or nil if it cannot be resolved.
func (c *Converter) destination(namespace string, b *networkingv1.IngressBackend, field string, found *findings) *networking.Destination {
	if b.Service == nil {
		found.add(field+".service", "is required: other backends are not supported")
		return nil
	}
	number := uint32(max(0, b.Service.Port.Number)) //nolint:gosec // not negative
	if name := b.Service.Port.Name; number == 0 && name != "" {
		if s := c.services[Key{namespace, b.Service.Name}]; s == nil {
			found.add(field+".service.name", fmt.Sprintf("there is no Service %s/%s", namespace, b.Service.Name))
		} else if number = s.ports[name]; number == 0 {
			found.add(field+".service.port.name", fmt.Sprintf("the Service %s/%s has no port %q", namespace, b.Service.Name, name))
		}
	} else if number == 0 {
		found.add(field+".service.port", "must have a number or a name")
	}
	if number == 0 {
		return nil
	}
	return &networking.Destination{
		Host: b.Service.Name + "." + namespace + ".svc." + c.opts.Domain,
		Port: &networking.PortSelector{Number: number},
	}
}

// matchOf returns the match of a path; nil matches everything.
func matchOf(p *networkingv1.HTTPIngressPath) *networking.StringMatch {
	kind := networkingv1.PathTypeImplementationSpecific
	if p.PathType != nil {
		kind = *p.PathType
	}
	if kind == networkingv1.PathTypeExact {
		return exact(p.Path)
	}
	if kind == networkingv1.PathTypePrefix {
		return prefix(p.Path)
	}
	switch p.Path {
	case "", "*", "/*", ".*":
		return nil
	}
	for _, wildcard := range []string{".*", "/*"} {
		if path, ok := strings.CutSuffix(p.Path, wildcard); ok {
			return prefix(path)
		}
	}
	return exact(p.Path)
}

func exact(path string) *networking.StringMatch {
	return &networking.StringMatch{MatchType: &networking.StringMatch_Exact{Exact: path}}
}

func prefix(path string) *networking.StringMatch {
	return &networking.StringMatch{MatchType: &networking.StringMatch_Prefix{Prefix: path}}
}
