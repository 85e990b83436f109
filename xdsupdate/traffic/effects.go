// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/pilotkit/pilotkit/internal/excerpt"
	"github.com/pilotkit/pilotkit/registry"
)

// Effect is one effect of an object. Both fields are phrases.
type Effect struct {
	// Clients are the affected clients, such as "sidecars and gRPC clients of namespace shop".
	Clients string
	// On is the affected traffic or resource, such as "requests to cart.example.com".
	On string
}

// String returns "clients: on".
func (e Effect) String() string { return e.Clients + ": " + e.On }

// effects returns an effect for each host in the mesh and for each Gateway.
func (v *virtualService) effects(f *findings) []Effect {
	if v.delegate() {
		return f.effectsOfDelegate(v)
	}
	var out []Effect
	for _, name := range v.gateways {
		if name != meshGateway {
			if f.whyNotServed(v, name) == "" {
				out = append(out, Effect{"routers of Gateway " + name, "connections and requests to " + joinHosts(v.hosts)})
			}
			continue
		}
		for _, host := range v.hosts {
			if len(v.spec.GetHttp()) == 0 || f.aliased(host) != "" || f.shadowing(v, host) != nil {
				continue
			}
			clients := "sidecars and gRPC clients"
			if !f.some(host, anyService) {
				clients = "sidecars"
			}
			out = append(out, Effect{clients + " of " + v.visibility.String(), "requests to " + string(host)})
		}
	}
	return out
}

func (f *findings) effectsOfDelegate(v *virtualService) []Effect {
	var out []Effect
	for _, root := range f.virtualServices {
		for i, r := range root.spec.GetHttp() {
			if f.delegateOf(root, r) == v {
				out = append(out, Effect{"clients of VirtualService " + root.String(), "in the place of " + element("spec.http", i)})
			}
		}
	}
	return out
}

func (r *destinationRule) effects(f *findings) []Effect {
	of, _ := f.index.rules.hosts.Get(ruleKey{r.namespace, r.host})
	if f.aliased(r.host) != "" || replacing(r, of) != nil {
		return nil
	}
	var out []Effect
	for s := range f.servicesOf(r.host) {
		seen := r.visibility
		if r.namespace != s.Attributes.Namespace && r.namespace != f.settings.rootNamespace() {
			// For services of other namespaces, a rule applies only to clients in its own
			// namespace.
			if seen = private(r.namespace); !r.visibility.in(r.namespace) {
				continue
			}
		}
		clients := "clients of " + seen.String()
		if r.selective() {
			clients += " with the labels " + r.selector.String()
		}
		on := Effect{clients, "clusters of " + excerpt.Object("service", s.Attributes.Namespace, string(s.Hostname))}
		if !slices.Contains(out, on) {
			out = append(out, on)
		}
	}
	slices.SortFunc(out, func(a, b Effect) int { return cmp.Compare(a.On, b.On) })
	return out
}

func (g *gateway) effects(f *findings) []Effect {
	clients := "all routers"
	if g.owner != (objectName{}) {
		clients = fmt.Sprintf("routers of namespace %s of the Kubernetes Gateway %s", g.owner.namespace, g.owner.name)
	} else if labels := registry.Labels(g.spec.GetSelector()); len(labels) > 0 {
		clients = "routers with the labels " + labels.String()
	}
	var out []Effect
	for _, l := range f.listenersFor(g) {
		for _, s := range l.servers {
			if s.gateway == g {
				out = append(out, Effect{clients, fmt.Sprintf("%s on port %d for %s",
					s.spec.GetPort().GetProtocol(), s.port(), strings.Join(s.spec.GetHosts(), ", "))})
			}
		}
	}
	return out
}

func (s *sidecar) effects(f *findings) []Effect {
	list := f.sidecars.in(s.namespace)
	if slices.ContainsFunc(list[:slices.Index(list, s)], func(b *sidecar) bool { return b.selector.SubsetOf(s.selector) }) {
		return nil
	}
	clients := "sidecars and gRPC clients of namespace " + s.namespace
	switch {
	case s.selective():
		clients += " with the labels " + s.selector.String()
	case s.namespace == f.settings.rootNamespace():
		clients = "sidecars and gRPC clients of all namespaces without a Sidecar of their own"
	}
	seen := len(newScope(f.index, f.world, s, s.namespace).sorted)
	return []Effect{{clients, fmt.Sprintf("%d services are seen", seen)}}
}

// String returns "all namespaces" or "namespaces a, b".
func (v visibility) String() string {
	switch {
	case v.public:
		return "all namespaces"
	case len(v.namespaces) == 1:
		return "namespace " + v.namespaces[0]
	default:
		return "namespaces " + strings.Join(v.namespaces, ", ")
	}
}

func joinHosts(hosts []registry.Hostname) string {
	out := make([]string, len(hosts))
	for i, h := range hosts {
		out[i] = string(h)
	}
	return strings.Join(out, ", ")
}
