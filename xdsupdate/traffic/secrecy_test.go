// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/internal/routesim"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// TestProxiesGetNothingHidden: by whatever name a proxy asks, it gets no cluster, no
// endpoints and no default route of a service that is not exported to its namespace
// or that its Sidecar does not import, and no route of a VirtualService that it must
// not see.
func TestProxiesGetNothingHidden(t *testing.T) {
	meshes := uint64(300)
	if testing.Short() {
		meshes = 30
	}
	hidden := 0
	for seed := range meshes {
		s := newSimulation(seed + 3_000_000)
		w := newListWorld(s.services...)
		for i, svc := range s.services {
			if s.chance(40) {
				svc.Attributes.ExportTo = pick(s.Rand, [][]registry.Visibility{{"."}, {"billing"}, {"~"}})
			}
			w.index.UpdateServiceEndpoints(xdsupdate.ShardKey{Provider: registry.External}, svc.Hostname, svc.Attributes.Namespace, secretEndpoints(svc, i))
		}
		exports := s.nameRules()
		s.sidecars(&routesim.Mesh{})
		s.gateways(&routesim.Mesh{})
		st := newState(newIndex(s.configs, newSettings(Options{})), w)
		for _, r := range []role{sidecarProxy, grpcClient, router} {
			for _, namespace := range []string{"shop", "billing", "other"} {
				p := &proxy{role: r, namespace: namespace, labels: registry.Labels{"app": pick(s.Rand, []string{"web", "job", "edge"})}}
				secrets := &secrecy{t: t, st: st, proxy: p, s: s, about: fmt.Sprintf("mesh %d, proxy %+v", seed, p)}
				for i, svc := range s.services {
					if !secrets.maySee(svc) {
						hidden++
						secrets.checkService(svc, i)
					}
				}
				secrets.checkRoutes(exports)
			}
		}
	}
	if hidden < 100 {
		t.Errorf("only %d hidden services", hidden)
	}
}

// secretAddress is the address of the only endpoint of a service.
func secretAddress(i int) string { return fmt.Sprintf("10.99.0.%d", i) }

func secretEndpoints(svc *registry.Service, i int) []*registry.Endpoint {
	var out []*registry.Endpoint
	for _, p := range svc.Ports {
		out = append(out, &registry.Endpoint{
			Addresses: []string{secretAddress(i)}, EndpointPort: p.Number, ServicePortName: p.Name, HealthStatus: registry.Healthy,
			Shared: &registry.EndpointAttributes{Labels: registry.Labels{"version": "v1"}},
		})
	}
	return out
}

// nameRules names every rule after its VirtualService, and returns where these are
// exported to.
func (s *simulation) nameRules() map[string]exportedTo {
	out := make(map[string]exportedTo)
	for _, c := range s.configs {
		v := c.Spec.(*networking.VirtualService)
		name := c.Namespace + "_" + c.Name
		out[name] = exportedTo{v.GetExportTo(), c.Namespace}
		for _, r := range v.GetHttp() {
			r.Name = name
		}
	}
	return out
}

// exportedTo is the exportTo of a VirtualService in a namespace.
type exportedTo struct {
	to        []string
	namespace string
}

func (e exportedTo) in(namespace string) bool {
	return len(e.to) == 0 || slices.Contains(e.to, "*") || slices.Contains(e.to, namespace) || slices.Contains(e.to, ".") && e.namespace == namespace
}

// secrecy is the check of one proxy.
type secrecy struct {
	t     *testing.T
	st    *state
	proxy *proxy
	s     *simulation
	about string
}

// maySee is a direct reading of exportTo, and of the Sidecar: what it imports, or
// any VirtualService may lead to.
func (c *secrecy) maySee(svc *registry.Service) bool {
	exported := len(svc.Attributes.ExportTo) == 0 || slices.Contains(svc.Attributes.ExportTo, registry.Visibility(c.proxy.namespace)) ||
		slices.Contains(svc.Attributes.ExportTo, ".") && svc.Attributes.Namespace == c.proxy.namespace
	if !exported {
		return false
	}
	sc := c.st.sidecarOf(c.proxy)
	if c.proxy.role == router || sc == nil {
		return true
	}
	for _, l := range sc.spec.GetEgress() {
		for _, h := range l.GetHosts() {
			namespace, host, _ := strings.Cut(strings.ToLower(h), "/")
			if namespace == "." {
				namespace = c.proxy.namespace
			}
			inside := namespace == "*" || namespace == svc.Attributes.Namespace
			if inside && lower(svc.Hostname).SubsetOf(registry.Hostname(host)) {
				return true
			}
		}
	}
	return len(sc.spec.GetEgress()) == 0 || slices.ContainsFunc(c.s.configs.virtual(), func(v *networking.VirtualService) bool {
		return strings.Contains(strings.ToLower(v.String()), strings.Split(strings.ToLower(string(svc.Hostname)), ".")[0])
	})
}

func (l configList) virtual() []*networking.VirtualService {
	var out []*networking.VirtualService
	for _, c := range l {
		if v, ok := c.Spec.(*networking.VirtualService); ok {
			out = append(out, v)
		}
	}
	return out
}

// checkService asks for everything that there could be of a hidden service.
func (c *secrecy) checkService(svc *registry.Service, i int) {
	c.t.Helper()
	for _, n := range slices.Concat(c.st.clusterNames(c.proxy), c.st.assignmentNames(c.proxy)) {
		if strings.HasSuffix(n, "|"+string(svc.Hostname)) {
			c.t.Errorf("%s: lists %s", c.about, n)
		}
	}
	for _, port := range simPorts {
		for _, subset := range []string{"", "v1"} {
			for _, form := range []string{"outbound|%d|%s|%s", "outbound_.%d_.%s_.%s"} {
				name := fmt.Sprintf(form, port, subset, svc.Hostname)
				if contains(c.st.cluster(c.proxy, name).GetLoadAssignment(), i) || contains(c.st.assignment(c.proxy, name), i) {
					c.t.Errorf("%s: has endpoints of %s", c.about, name)
				}
			}
		}
		host := fmt.Sprintf("%s:%d", svc.Hostname, port)
		if c.proxy.role == grpcClient && (c.st.grpcListener(c.proxy, host) != nil || c.st.routesSent(c.proxy, fmt.Sprintf("outbound|%d||%s", port, svc.Hostname)) != nil) {
			c.t.Errorf("%s: has a listener or routes of %s", c.about, host)
		}
		for _, vh := range c.st.routesSent(c.proxy, fmt.Sprint(port)).GetVirtualHosts() {
			if strings.EqualFold(vh.GetName(), host) && vh.GetRoutes()[0].GetName() == "default" {
				c.t.Errorf("%s: has the default route of %s", c.about, host)
			}
		}
	}
}

func contains(a *endpointv3.ClusterLoadAssignment, i int) bool {
	return strings.Contains(a.String(), `"`+secretAddress(i)+`"`)
}

// checkRoutes looks at the names of all routes: "ROOT" or "ROOT-DELEGATE".
func (c *secrecy) checkRoutes(exports map[string]exportedTo) {
	c.t.Helper()
	for _, config := range c.allRoutes() {
		for _, vh := range config.GetVirtualHosts() {
			for _, r := range vh.GetRoutes() {
				root, delegate, _ := strings.Cut(r.GetName(), "-")
				if v, ok := exports[root]; ok && !v.in(c.proxy.namespace) {
					c.t.Errorf("%s: has a route of %s", c.about, root)
				}
				namespace, _, _ := strings.Cut(root, "_")
				if v, ok := exports[delegate]; ok && !v.in(namespace) {
					c.t.Errorf("%s: %s has a route of %s", c.about, root, delegate)
				}
			}
		}
	}
}

func (c *secrecy) allRoutes() []*routev3.RouteConfiguration {
	names := c.st.routeNames(c.proxy)
	for _, svc := range c.s.services {
		for _, port := range simPorts {
			names = append(names, fmt.Sprint(port), fmt.Sprintf("http.%d", port), fmt.Sprintf("%s:%d", svc.Hostname, port), fmt.Sprintf("outbound|%d||%s", port, svc.Hostname))
		}
	}
	var out []*routev3.RouteConfiguration
	for _, n := range names {
		out = append(out, c.st.routesSent(c.proxy, n))
	}
	return out
}
