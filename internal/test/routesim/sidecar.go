// SPDX-License-Identifier: Apache-2.0

package routesim

import (
	"cmp"
	"slices"
	"strings"
	"time"

	networking "istio.io/api/networking/v1alpha3"
)

// Sidecar is an object with its spec. Its egress listeners are HTTP ones.
type Sidecar struct {
	Namespace, Name string
	Created         time.Time
	*networking.Sidecar
}

// RootNamespace is where the Sidecar of namespaces without one is.
const RootNamespace = "istio-system"

// sidecarOf returns the Sidecar of a proxy; nil for none.
func (m *Mesh) sidecarOf(p Proxy) *Sidecar {
	sorted := slices.SortedFunc(slices.Values(m.Sidecars), func(a, b *Sidecar) int {
		return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Namespace, b.Namespace))
	})
	first := func(is func(s *Sidecar) bool) *Sidecar {
		if i := slices.IndexFunc(sorted, is); i >= 0 {
			return sorted[i]
		}
		return nil
	}
	plain := func(s *Sidecar) bool { return len(s.GetWorkloadSelector().GetLabels()) == 0 }
	for _, is := range []func(s *Sidecar) bool{
		func(s *Sidecar) bool { return s.Namespace == p.Namespace && !plain(s) && selects(s, p) },
		func(s *Sidecar) bool { return s.Namespace == p.Namespace && plain(s) },
		func(s *Sidecar) bool { return s.Namespace == RootNamespace && plain(s) },
	} {
		if s := first(is); s != nil {
			return s
		}
	}
	return nil
}

func selects(s *Sidecar, p Proxy) bool {
	for k, v := range s.GetWorkloadSelector().GetLabels() {
		if p.Labels[k] != v {
			return false
		}
	}
	return true
}

// egress returns the listener for a port, nil standing for everything; it is not ok
// if there is none.
func (m *Mesh) egress(p Proxy, port uint32) (l *networking.IstioEgressListener, ok bool) {
	s := m.sidecarOf(p)
	if len(s.listeners()) == 0 {
		return nil, true
	}
	for _, l := range s.listeners() {
		if l.GetPort() == nil || l.GetPort().GetNumber() == port {
			return l, true
		}
	}
	return nil, false
}

func (s *Sidecar) listeners() []*networking.IstioEgressListener {
	if s == nil {
		return nil
	}
	return s.GetEgress()
}

// blocks reports whether requests to unknown hosts are answered with 502.
func (m *Mesh) blocks(p Proxy) bool {
	if s := m.sidecarOf(p); s != nil && s.GetOutboundTrafficPolicy() != nil {
		return s.GetOutboundTrafficPolicy().GetMode() == networking.OutboundTrafficPolicy_REGISTRY_ONLY
	}
	return m.RegistryOnly
}

// imports reports whether a listener for proxies of a namespace has a host of an
// object in another.
func imports(l *networking.IstioEgressListener, own, namespace string, matches func(host string) bool) bool {
	if l == nil {
		return true
	}
	included := false
	for _, text := range l.GetHosts() {
		from, host, _ := strings.Cut(strings.ToLower(text), "/")
		excluded := strings.HasPrefix(from, "~")
		if from = strings.TrimPrefix(from, "~"); from == "" {
			from = "*"
		}
		if from == "." {
			from = own
		}
		if from != "*" && from != namespace || !matches(host) {
			continue
		}
		if excluded {
			return false
		}
		included = true
	}
	return included
}

// imports reports whether the listener has a service.
func (w where) imports(s *Service) bool {
	if n := w.egress.GetPort().GetNumber(); n != 0 && !slices.Contains(s.Ports, n) {
		return false
	}
	return imports(w.egress, w.proxy.Namespace, s.Namespace, func(host string) bool { return covers(host, strings.ToLower(s.Host)) })
}

// importsVirtualService reports whether the listener has a VirtualService: by one of
// its hosts.
func (w where) importsVirtualService(v *VirtualService) bool {
	return slices.ContainsFunc(hosts(v), func(h string) bool {
		return imports(w.egress, w.proxy.Namespace, v.Namespace, func(host string) bool { return covers(host, h) || covers(h, host) })
	})
}

// inScope reports whether some listener of the proxy's Sidecar has a service: by its own host, or
// because a VirtualService that it imports leads there. A listener with a port has services with it.
func (w where) inScope(s *Service) bool {
	listeners := w.mesh.sidecarOf(w.proxy).listeners()
	return len(listeners) == 0 || slices.ContainsFunc(listeners, func(l *networking.IstioEgressListener) bool {
		at := w
		at.egress = l
		n := l.GetPort().GetNumber()
		return at.imports(s) || (n == 0 || slices.Contains(s.Ports, n)) && slices.ContainsFunc(at.bound(), func(v *VirtualService) bool {
			return w.mesh.leadsTo(v, s, n != 0)
		})
	})
}

// leadsTo reports whether a VirtualService or one of its delegates has a destination at a service: at
// one of its ports, or at any.
func (m *Mesh) leadsTo(v *VirtualService, s *Service, anyPort bool) bool {
	return slices.ContainsFunc(v.GetHttp(), func(r *networking.HTTPRoute) bool {
		if d := m.delegate(v, r); d != nil && m.leadsTo(d, s, anyPort) {
			return true
		}
		destinations := []*networking.Destination{r.GetMirror()}
		for _, to := range r.GetRoute() {
			destinations = append(destinations, to.GetDestination())
		}
		for _, to := range r.GetMirrors() {
			destinations = append(destinations, to.GetDestination())
		}
		return slices.ContainsFunc(destinations, func(d *networking.Destination) bool {
			n := d.GetPort().GetNumber()
			return d != nil && strings.EqualFold(fullName(d.GetHost(), v.Namespace), s.Host) && (anyPort || n == 0 || slices.Contains(s.Ports, n))
		})
	})
}
