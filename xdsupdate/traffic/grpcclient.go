// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"slices"
	"strings"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// grpcRoutes returns the route configuration of a port of a service for a gRPC
// client, whose name is that of the service's cluster, nil for none, and what is left
// out of it. The service can be called by all its names.
func (st *state) grpcRoutes(p *proxy, name string) (*routev3.RouteConfiguration, []error) {
	port, host, ok := envoy.ParseClusterName(name)
	if !ok {
		return nil, nil
	}
	e, svc := st.grpcService(p, host, port)
	if svc == nil || lower(svc.host) != lower(host) {
		return nil, nil
	}
	routes, leftOut := st.serviceRoutes(p, e, svc, place{gateway: meshGateway, port: port, service: svc})
	b := st.newVirtualHosts(p, e, []*service{svc})
	b.addService(svc, port, bothDomains, routes)
	return &routev3.RouteConfiguration{Name: name, VirtualHosts: b.hosts}, leftOut
}

// grpcService returns a service with a port, and the egress listener that it is of.
func (st *state) grpcService(p *proxy, host registry.Hostname, port uint32) (*egress, *service) {
	e := st.scopeOf(p).egressFor(port)
	if e == nil {
		return nil, nil
	}
	svc := e.service(host)
	if svc != nil {
		_, svc = concrete(svc, e.service)
	}
	if _, ok := svc.port(port); !ok {
		return nil, nil
	}
	return e, svc
}

// grpcListener returns the listener by which a gRPC client finds the routes of a
// target; nil for none. The name is the target: "HOST:PORT", or "HOST" for the port
// that envoy.DefaultPort says. A host of the client's own namespace has short names.
func (st *state) grpcListener(p *proxy, name string) *listenerv3.Listener {
	port, host, ok := envoy.ParseListenerName(name)
	if !ok {
		return nil
	}
	for _, h := range []registry.Hostname{host, completed(host, p.namespace, st.settings.domain)} {
		number := port
		if number == 0 {
			scope := st.scopeOf(p)
			svc := scope.service(h)
			if svc != nil {
				_, svc = concrete(svc, scope.service)
			}
			number = defaultPort(svc)
		}
		if _, svc := st.grpcService(p, h, number); svc != nil {
			address := registry.UnspecifiedAddress
			if all := addressesOf(svc, p); len(all) > 0 {
				address = strings.Trim(all[0], "[]")
			}
			return envoy.GRPCListener(name, envoy.ClusterName(number, svc.host), address, number)
		}
	}
	return nil
}

// completed returns the full name of a short one in a namespace: "NAME",
// "NAME.NAMESPACE" or "NAME.NAMESPACE.svc".
func completed(host registry.Hostname, namespace, domain string) registry.Hostname {
	name := strings.TrimSuffix(string(lower(host)), ".svc")
	if label, rest, dotted := strings.Cut(name, "."); dotted && rest == namespace {
		name = label
	}
	if strings.Contains(name, ".") {
		return host
	}
	return registry.Hostname(name + "." + namespace + ".svc." + domain)
}

// defaultPort is the port of a target without one; 0 for none.
func defaultPort(svc *service) uint32 {
	if svc == nil {
		return 0
	}
	all := newService(svc.of).ports
	i := slices.IndexFunc(all, func(p servicePort) bool { return p.Protocol == registry.ProtocolGRPC })
	switch {
	case len(all) == 1:
		return all[0].Number
	case i >= 0:
		return all[i].Number
	default:
		return 0
	}
}
