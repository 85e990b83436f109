// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/internal/test/histories"
	"github.com/pilotkit/pilotkit/internal/test/routesim"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
)

// TestProxiesGetNothingHidden: by whatever name a proxy asks, it gets no cluster, no
// endpoints and no default route of a service that is not exported to its namespace
// or that its Sidecar does not import, and no route of a VirtualService that it must
// not see.
func TestProxiesGetNothingHidden(t *testing.T) {
	hidden := 0
	for _, seed := range histories.Seeds(t, 60) {
		s := newSimulation(seed + 3_000_000)
		services := populate(s.services...)
		for i, svc := range s.services {
			if s.chance(40) {
				svc.Attributes.ExportTo = pick(s.Rand, [][]registry.Visibility{{"."}, {"billing"}, {"~"}})
			}
			services.place(svc, secretAddress(i)+" version=v1")
		}
		exports := s.nameRules()
		s.sidecars(&routesim.Mesh{})
		s.gateways(&routesim.Mesh{})
		plane := stage(t, traffic.Options{}, s.configs, services)
		for _, kind := range []string{"sidecar", "grpc", "router"} {
			for _, namespace := range []string{"shop", "billing", "other"} {
				n := in(kind, namespace, "app="+pick(s.Rand, []string{"web", "job", "edge"}))
				secrets := &secrecy{t: t, scene: plane, node: n, namespace: namespace, s: s, about: fmt.Sprintf("mesh %d, client %v", seed, n)}
				hidden += secrets.check(exports)
			}
		}
		plane.close()
	}
	if hidden == 0 {
		t.Error("no hidden services")
	}
}

// secretAddress is the address of the only endpoint of a service.
func secretAddress(i int) string { return fmt.Sprintf("10.99.0.%d", i) }

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

// secrecy is the check of one client.
type secrecy struct {
	t         *testing.T
	scene     *scene
	node      *core.Node
	namespace string
	s         *simulation
	about     string
}

// check asks for everything that there could be of hidden services, and returns how many
// there are.
func (c *secrecy) check(exports map[string]exportedTo) int {
	c.t.Helper()
	holds := c.scene.explain(c.node, traffic.Call{Host: cart, Port: 80}).Sidecar
	var sidecar *networking.Sidecar
	for _, o := range c.s.configs {
		if o.GroupVersionKind == istio.Sidecar && o.Namespace+"/"+o.Name == holds {
			sidecar = o.Spec.(*networking.Sidecar)
		}
	}
	var names []string
	for _, form := range []string{"outbound|%[2]d||%[1]s", "outbound|%[2]d|v1|%[1]s", "outbound_.%[2]d_._.%[1]s", "outbound_.%[2]d_.v1_.%[1]s"} {
		names = append(names, c.s.names(form)...)
	}
	listed := c.scene.ask(c.node, envoy.ClusterType).names
	clusters, assignments := c.scene.ask(c.node, envoy.ClusterType, names...), c.scene.ask(c.node, envoy.LoadAssignmentType, names...)
	routes := c.scene.routeConfigs(c.node, slices.Concat(
		portNames(""), portNames("http."), c.s.names("%s:%d"), c.s.names("outbound|%[2]d||%[1]s"), c.scene.ask(c.node, envoy.RouteType).names)...)
	var listeners []string
	if isGRPC(c.node) {
		listeners = c.scene.ask(c.node, envoy.ListenerType, c.s.names("%s:%d")...).names
	}
	c.checkRoutes(routes, exports)
	hidden, text := 0, fmt.Sprint(clusters.resources, assignments.resources)
	for i, svc := range c.s.services {
		if c.maySee(svc, sidecar) {
			continue
		}
		hidden++
		if slices.ContainsFunc(listed, func(n string) bool { return strings.HasSuffix(n, "|"+string(svc.Hostname)) }) {
			c.t.Errorf("%s: lists clusters of %s", c.about, svc.Hostname)
		}
		if strings.Contains(text, `"`+secretAddress(i)+`"`) {
			c.t.Errorf("%s: has endpoints of %s", c.about, svc.Hostname)
		}
		c.checkNames(svc, listeners, routes)
	}
	return hidden
}

// maySee is a direct reading of exportTo, and of the Sidecar that holds, if any: what it
// imports, or any VirtualService may lead to.
func (c *secrecy) maySee(svc *registry.Service, sidecar *networking.Sidecar) bool {
	exported := len(svc.Attributes.ExportTo) == 0 || slices.Contains(svc.Attributes.ExportTo, registry.Visibility(c.namespace)) ||
		slices.Contains(svc.Attributes.ExportTo, ".") && svc.Attributes.Namespace == c.namespace
	if !exported || sidecar == nil {
		return exported
	}
	for _, l := range sidecar.GetEgress() {
		for _, h := range l.GetHosts() {
			namespace, host, _ := strings.Cut(strings.ToLower(h), "/")
			if namespace == "." {
				namespace = c.namespace
			}
			inside := namespace == "*" || namespace == svc.Attributes.Namespace
			if inside && registry.Hostname(strings.ToLower(string(svc.Hostname))).SubsetOf(registry.Hostname(host)) {
				return true
			}
		}
	}
	return len(sidecar.GetEgress()) == 0 || slices.ContainsFunc(c.s.configs.virtual(), func(v *networking.VirtualService) bool {
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

// checkNames looks for what names of a hidden service lead to.
func (c *secrecy) checkNames(svc *registry.Service, listeners []string, routes map[string]*routev3.RouteConfiguration) {
	c.t.Helper()
	for _, port := range simPorts {
		host := fmt.Sprintf("%s:%d", svc.Hostname, port)
		if slices.Contains(listeners, host) || isGRPC(c.node) && routes[envoy.ClusterName(port, svc.Hostname)] != nil {
			c.t.Errorf("%s: has a listener or routes of %s", c.about, host)
		}
		for _, vh := range routes[fmt.Sprint(port)].GetVirtualHosts() {
			if strings.EqualFold(vh.GetName(), host) && vh.GetRoutes()[0].GetName() == "default" {
				c.t.Errorf("%s: has the default route of %s", c.about, host)
			}
		}
	}
}

// checkRoutes looks at the names of all routes: "ROOT" or "ROOT-DELEGATE".
func (c *secrecy) checkRoutes(routes map[string]*routev3.RouteConfiguration, exports map[string]exportedTo) {
	c.t.Helper()
	for _, config := range routes {
		for _, vh := range config.GetVirtualHosts() {
			for _, r := range vh.GetRoutes() {
				root, delegate, _ := strings.Cut(r.GetName(), "-")
				if v, ok := exports[root]; ok && !v.in(c.namespace) {
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
