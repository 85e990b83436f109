// SPDX-License-Identifier: Apache-2.0

package routesim

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	networking "istio.io/api/networking/v1alpha3"
)

// Mesh has the objects that determine the outcome of requests. Host names of services are unique.
type Mesh struct {
	VirtualServices []*VirtualService
	Services        []*Service
	Gateways        []*Gateway
	Sidecars        []*Sidecar
	// RegistryOnly: requests to unknown hosts are answered with 502.
	RegistryOnly bool
}

// VirtualService is an object with its spec.
type VirtualService struct {
	Namespace, Name string
	Created         time.Time
	*networking.VirtualService
}

// Service is a service with the ports on which it takes HTTP requests.
type Service struct {
	Namespace string
	// Host is in any letter case.
	Host string
	// Address is a domain of its own; "" for none.
	Address  string
	ExportTo []string
	// Ports are all ports, HTTP the ports for requests.
	Ports, HTTP []uint32
}

// Proxy is a client.
type Proxy struct {
	Namespace string
	Labels    map[string]string
}

// Outbound returns the outcome of a request of a sidecar's workload. ok is false if no listener of
// its Sidecar takes the request.
func (m *Mesh) Outbound(p Proxy, r Request) (out Outcome, ok bool) {
	at, ok := m.outbound(p, r)
	if !ok {
		return Outcome{}, false
	}
	svc := at.serviceMeant(r)
	if v := at.virtualService(svc, r); v != nil {
		return at.apply(at.rules(v), r), true
	}
	if svc != nil {
		return defaultOutcome(fmt.Sprintf("outbound|%d||%s", r.Port, svc.Host), r), true
	}
	if m.blocks(p) {
		return Outcome{Status: 502}, true
	}
	return Outcome{Targets: map[string]uint32{"PassthroughCluster": 1}, Path: r.Path, Host: r.Authority}, true
}

func (m *Mesh) outbound(p Proxy, r Request) (where, bool) {
	l, ok := m.egress(p, r.Port)
	return where{mesh: m, proxy: p, gateway: "mesh", port: r.Port, egress: l}, ok
}

// Decides reports whether a VirtualService determines the outcome of a request.
func (m *Mesh) Decides(p Proxy, r Request) bool {
	at, ok := m.outbound(p, r)
	return ok && at.virtualService(at.serviceMeant(r), r) != nil
}

// virtualService returns the VirtualService that a request is subject to, which is
// meant for a service, or for an unknown host; nil for none.
func (w where) virtualService(svc *Service, r Request) *VirtualService {
	if svc == nil {
		return w.unknownHost(r.host())
	}
	for _, v := range w.about(svc) {
		if len(w.rules(v)) > 0 {
			return v
		}
	}
	return nil
}

const defaultConditions = "connect-failure,refused-stream,unavailable,cancelled,retriable-status-codes[]"

func defaultOutcome(cluster string, r Request) Outcome {
	return Outcome{Targets: map[string]uint32{cluster: 1}, Path: r.Path, Host: r.Authority, Retries: 2, RetryOn: defaultConditions}
}

// exported reports whether an object of a namespace counts in another.
func exported(to []string, own, namespace string) bool {
	return len(to) == 0 || slices.Contains(to, "*") || slices.Contains(to, namespace) || slices.Contains(to, ".") && own == namespace
}

func (m *Mesh) sees(p Proxy, s *Service) bool {
	return exported(s.ExportTo, s.Namespace, p.Namespace)
}

// has reports whether a proxy sees a service here.
func (w where) has(s *Service) bool { return w.mesh.sees(w.proxy, s) && w.imports(s) }

// serves reports whether a proxy sees that a service takes requests here.
func (w where) serves(s *Service) bool { return w.has(s) && slices.Contains(s.HTTP, w.port) }

const localDomain = ".svc.cluster.local"

// serviceMeant returns the service that a host means, by any of its names.
func (w where) serviceMeant(r Request) *Service {
	host := r.host()
	find := func(is func(name string, s *Service) bool) *Service {
		for _, s := range w.mesh.Services {
			if w.serves(s) && is(strings.ToLower(s.Host), s) {
				return s
			}
		}
		return nil
	}
	for _, is := range []func(string, *Service) bool{
		func(name string, _ *Service) bool { return host == name || host == name+"." },
		func(name string, _ *Service) bool {
			if !strings.HasSuffix(name, localDomain) {
				return false
			}
			short := strings.TrimSuffix(host, ".svc")
			inside := strings.TrimSuffix(name, localDomain)
			return short == inside || host+"."+w.proxy.Namespace == inside && !strings.Contains(host, ".")
		},
		func(_ string, s *Service) bool { return host == s.Address },
	} {
		if s := find(is); s != nil {
			return s
		}
	}
	return nil
}

// fullName is the host that an object of a namespace means.
func fullName(host, namespace string) string {
	host = strings.ToLower(host)
	if strings.Contains(host, ".") || strings.HasPrefix(host, "*") {
		return host
	}
	return host + "." + namespace + localDomain
}

func hosts(c *VirtualService) []string {
	var out []string
	for _, h := range c.GetHosts() {
		out = append(out, fullName(h, c.Namespace))
	}
	return out
}

func gatewayName(name, namespace string) string {
	if name == "mesh" || strings.Contains(name, "/") {
		return name
	}
	return namespace + "/" + name
}

// where is a route configuration of a proxy.
type where struct {
	mesh    *Mesh
	proxy   Proxy
	gateway string
	port    uint32
	// egress is the listener of the proxy's Sidecar; nil if it restricts nothing.
	egress *networking.IstioEgressListener
}

// bound returns the VirtualServices that count, in the order of precedence.
func (w where) bound() []*VirtualService {
	var out []*VirtualService
	for _, c := range w.mesh.VirtualServices {
		names := c.GetGateways()
		if len(names) == 0 {
			names = []string{"mesh"}
		}
		is := func(n string) bool { return gatewayName(n, c.Namespace) == w.gateway }
		if len(c.GetHosts()) > 0 && slices.ContainsFunc(names, is) && exported(c.GetExportTo(), c.Namespace, w.proxy.Namespace) && w.importsVirtualService(c) {
			out = append(out, c)
		}
	}
	slices.SortFunc(out, func(a, b *VirtualService) int {
		return cmp.Or(
			cmp.Compare(w.publicity(a), w.publicity(b)), a.Created.Compare(b.Created),
			cmp.Compare(a.Name, b.Name), cmp.Compare(a.Namespace, b.Namespace),
		)
	})
	return out
}

// publicity: private objects of the proxy's namespace come first.
func (w where) publicity(c *VirtualService) int {
	to := c.GetExportTo()
	if len(to) == 0 || slices.Contains(to, "*") || c.Namespace != w.proxy.Namespace {
		return 1
	}
	return 0
}

// covers reports whether a host of a VirtualService covers a name.
func covers(host, name string) bool {
	suffix, wild := strings.CutPrefix(host, "*")
	return host == name || wild && strings.HasSuffix(name, suffix) && len(name) > len(suffix)
}

// longest returns the best of the hosts of VirtualServices for a name.
func (w where) longest(name string, allowed func(host string) bool) string {
	best := ""
	for _, c := range w.bound() {
		for _, h := range hosts(c) {
			switch {
			case !covers(h, name) || !allowed(h):
			case h == name:
				return h
			case len(h) > len(best):
				best = h
			}
		}
	}
	return best
}

// about returns the VirtualServices for a service.
func (w where) about(s *Service) []*VirtualService {
	best := w.longest(strings.ToLower(s.Host), func(string) bool { return true })
	var out []*VirtualService
	for _, c := range w.bound() {
		if best != "" && slices.Contains(hosts(c), best) {
			out = append(out, c)
		}
	}
	return out
}

// unknownHost returns the VirtualService for a host without a service. Such a host is served on
// port 80, and on the ports of a service in the same list of hosts.
func (w where) unknownHost(host string) *VirtualService {
	var found *VirtualService
	served := func(h string) bool {
		if w.known(h) {
			return false
		}
		found = nil
		for _, c := range w.bound() {
			if found == nil && slices.Contains(hosts(c), h) && (w.port == 80 || w.besideService(c)) && len(w.rules(c)) > 0 {
				found = c
			}
		}
		return found != nil
	}
	best := w.longest(host, served)
	if best == "" || !served(best) {
		return nil
	}
	return found
}

// known reports whether a host is a service's, or a wildcard for some on the port.
func (w where) known(host string) bool {
	return slices.ContainsFunc(w.mesh.Services, func(s *Service) bool {
		name := strings.ToLower(s.Host)
		if host == name {
			return w.has(s)
		}
		return strings.HasPrefix(host, "*") && covers(host, name) && w.serves(s)
	})
}

// besideService reports whether a VirtualService is about a service on the port.
func (w where) besideService(c *VirtualService) bool {
	return slices.ContainsFunc(w.mesh.Services, func(s *Service) bool {
		return w.serves(s) && slices.Contains(w.about(s), c)
	})
}
