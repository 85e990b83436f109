// SPDX-License-Identifier: Apache-2.0

package gatewayapi

import (
	"slices"

	networking "istio.io/api/networking/v1alpha3"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/pilotkit/pilotkit/configstore/istio"
)

// layer4 returns the destinations of a rule of a TCPRoute or TLSRoute. If there are none, the
// destination is a cluster that does not exist, as in Istio, so that connections are refused.
func (r *resolver) layer4(refs []gatewayv1.BackendRef) []*networking.RouteDestination {
	backends := weighted(refs, func(b *gatewayv1.BackendRef) *int32 { return b.Weight })
	if len(backends) == 0 {
		return []*networking.RouteDestination{{Destination: &networking.Destination{
			Host: "internal.cluster.local", Subset: "zero-weight", Port: &networking.PortSelector{Number: 65535},
		}}}
	}
	var out []*networking.RouteDestination
	for _, b := range backends {
		to, wrong := r.destination(&b.BackendObjectReference)
		r.note(wrong)
		out = append(out, &networking.RouteDestination{Destination: to, Weight: share(b.Weight, len(backends))})
	}
	return out
}

// addLayer4 adds the VirtualService of a TCPRoute or TLSRoute for one parent.
func (of common) addLayer4(v view, state *routeState, at *attachment, what converted) {
	spec := &networking.VirtualService{Gateways: []string{"mesh"}, Hosts: at.hosts}
	if slices.ContainsFunc(at.hosts, func(host string) bool { return v.consumes(at, host, of.object.GetNamespace()) }) {
		spec.ExportTo = ownNamespace()
	}
	if at.listener != nil {
		spec.Gateways = []string{at.owner.Namespace + "/" + at.listener.Config}
		spec.Hosts = nil
		for _, host := range at.serves(of.hostnames) {
			spec.Hosts = append(spec.Hosts, narrower(host, at.listener.Host))
		}
		if of.kind == KindTCPRoute {
			spec.Hosts = []string{anyHost}
		}
	}
	if len(spec.Hosts) == 0 {
		return
	}
	protocol := "tcp"
	if of.kind == KindTLSRoute {
		protocol = "tls"
		spec.Tls = tlsRoutes(of, at, spec.Hosts, what)
	} else {
		spec.Tcp = tcpRoutes(at, what)
	}
	if len(spec.Tls)+len(spec.Tcp) == 0 {
		return
	}
	key := Key{of.object.GetNamespace(), layer4Config(of.object.GetName(), protocol, len(state.configs))}
	config := v.c.config(istio.VirtualService, key, of.object.GetCreationTimestamp(), map[string]string{
		annotationParents:        string(of.kind) + "/" + of.object.GetName() + "." + of.object.GetNamespace(),
		annotationRouteSemantics: semanticsGateway,
	})
	config.Spec = spec
	state.configs[key] = config
}

func tcpRoutes(at *attachment, what converted) []*networking.TCPRoute {
	var out []*networking.TCPRoute
	for _, list := range what.lists {
		route := &networking.TCPRoute{Route: list}
		if at.port != 0 {
			route.Match = []*networking.L4MatchAttributes{{Port: uint32(at.port)}} //nolint:gosec // 1 to 65535
		}
		out = append(out, route)
	}
	return out
}

// tlsRoutes match the SNI of clients. In the mesh they match the route's hostnames, if it has any.
func tlsRoutes(of common, at *attachment, hosts []string, what converted) []*networking.TLSRoute {
	if at.listener == nil && of.hostnames[0] != anyHost {
		hosts = of.hostnames
	}
	var out []*networking.TLSRoute
	for _, list := range what.lists {
		out = append(out, &networking.TLSRoute{
			Match: []*networking.TLSMatchAttributes{{SniHosts: hosts, Port: uint32(at.port)}}, //nolint:gosec // 1 to 65535
			Route: list,
		})
	}
	return out
}
