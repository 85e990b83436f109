// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/pilotkit/pilotkit/internal/excerpt"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/mesh"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/objects"
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
func (f *findings) effectsOfVirtualService(v *objects.VirtualService) []Effect {
	if v.Delegate() {
		return f.effectsOfDelegate(v)
	}
	var out []Effect
	for _, name := range v.Gateways {
		if name != objects.MeshGateway {
			if f.whyNotServed(v, name) == "" {
				out = append(out, Effect{"routers of Gateway " + name, "connections and requests to " + joinHosts(v.Hosts)})
			}
			continue
		}
		for _, host := range v.Hosts {
			if len(v.Spec.GetHttp()) == 0 || f.aliased(host) != "" || f.shadowing(v, host) != nil {
				continue
			}
			clients := "sidecars and gRPC clients"
			if !f.some(host, anyService) {
				clients = "sidecars"
			}
			out = append(out, Effect{clients + " of " + v.Visibility.String(), "requests to " + string(host)})
		}
	}
	return out
}

func (f *findings) effectsOfDelegate(v *objects.VirtualService) []Effect {
	var out []Effect
	for _, root := range f.VirtualServices {
		for i, r := range root.Spec.GetHttp() {
			if f.DelegateOf(root, r) == v {
				out = append(out, Effect{"clients of VirtualService " + root.String(), "in the place of " + objects.Element("spec.http", i)})
			}
		}
	}
	return out
}

func (f *findings) effectsOfDestinationRule(r *objects.DestinationRule) []Effect {
	of := f.Rules.For(r.Namespace, r.Host)
	if f.aliased(r.Host) != "" || replacing(r, of) != nil {
		return nil
	}
	var out []Effect
	for s := range f.servicesOf(r.Host) {
		seen := r.Visibility
		if r.Namespace != s.Attributes.Namespace && r.Namespace != f.settings.RootNamespace() {
			// For services of other namespaces, a rule applies only to clients in its own
			// namespace.
			if seen = objects.Private(r.Namespace); !r.Visibility.In(r.Namespace) {
				continue
			}
		}
		clients := "clients of " + seen.String()
		if r.Selective() {
			clients += " with the labels " + r.Selector.String()
		}
		on := Effect{clients, "clusters of " + excerpt.Object("service", s.Attributes.Namespace, string(s.Hostname))}
		if !slices.Contains(out, on) {
			out = append(out, on)
		}
	}
	slices.SortFunc(out, func(a, b Effect) int { return cmp.Compare(a.On, b.On) })
	return out
}

func (f *findings) effectsOfGateway(g *objects.Gateway) []Effect {
	clients := "all routers"
	if g.Owner != (objects.ObjectName{}) {
		clients = fmt.Sprintf("routers of namespace %s of the Kubernetes Gateway %s", g.Owner.Namespace, g.Owner.Name)
	} else if labels := registry.Labels(g.Spec.GetSelector()); len(labels) > 0 {
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

func (f *findings) effectsOfSidecar(s *objects.Sidecar) []Effect {
	list := f.Sidecars.In(s.Namespace)
	if slices.ContainsFunc(list[:slices.Index(list, s)], func(b *objects.Sidecar) bool { return b.Selector.SubsetOf(s.Selector) }) {
		return nil
	}
	clients := "sidecars and gRPC clients of namespace " + s.Namespace
	switch {
	case s.Selective():
		clients += " with the labels " + s.Selector.String()
	case s.Namespace == f.settings.RootNamespace():
		clients = "sidecars and gRPC clients of all namespaces without a Sidecar of their own"
	}
	seen := len(mesh.NewScope(f.Index, f.world, s, s.Namespace, f.settings.limits.Imports).Sorted)
	return []Effect{{clients, fmt.Sprintf("%d services are seen", seen)}}
}

func joinHosts(hosts []registry.Hostname) string {
	out := make([]string, len(hosts))
	for i, h := range hosts {
		out[i] = string(h)
	}
	return strings.Join(out, ", ")
}

// effects returns the effects of an object.
func (f *findings) effects(o objects.Object) []Effect {
	switch o := o.(type) {
	case *objects.VirtualService:
		return f.effectsOfVirtualService(o)
	case *objects.DestinationRule:
		return f.effectsOfDestinationRule(o)
	case *objects.Gateway:
		return f.effectsOfGateway(o)
	case *objects.Sidecar:
		return f.effectsOfSidecar(o)
	case *objects.AuthorizationPolicy:
		return f.effectsOfAuthorizationPolicy(o)
	case *objects.PeerAuthentication:
		return f.effectsOfPeerAuthentication(o)
	case *objects.RequestAuthentication:
		return f.effectsOfRequestAuthentication(o)
	}
	return nil
}
