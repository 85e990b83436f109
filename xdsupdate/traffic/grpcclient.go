// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"slices"
	"strings"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

	"github.com/pilotkit/pilotkit/internal/xdsbuild"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/hostname"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/mesh"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/objects"
)

// grpcRoutes returns the route configuration of a service port for a gRPC client, or nil, and the
// errors for parts of it that are left out. Its name is the name of the service's cluster. It
// covers all names of the service.
func (st *state) grpcRoutes(p *proxy, name string) (*routev3.RouteConfiguration, []error) {
	port, host, ok := envoy.ParseClusterName(name)
	if !ok {
		return nil, nil
	}
	e, svc := st.grpcService(p, host, port)
	if svc == nil || hostname.Lower(svc.Host) != hostname.Lower(host) {
		return nil, nil
	}
	rules := st.serviceRoutes(p, e, svc, place{gateway: objects.MeshGateway, port: port, service: svc})
	b := st.newVirtualHosts(p, e, []*mesh.Service{svc})
	b.addService(svc, port, bothDomains, rules)
	return &routev3.RouteConfiguration{Name: name, VirtualHosts: b.hosts}, rules.leftOut
}

// grpcService returns the service with a port, and the egress listener that contains it.
func (st *state) grpcService(p *proxy, host registry.Hostname, port uint32) (*mesh.Egress, *mesh.Service) {
	e := st.scopeOf(p).EgressFor(port)
	if e == nil {
		return nil, nil
	}
	svc := e.Service(host)
	if svc != nil {
		_, svc = mesh.Concrete(svc, e.Service)
	}
	if _, ok := svc.Port(port); !ok {
		return nil, nil
	}
	return e, svc
}

// grpcListener returns the API listener for a target of a gRPC client, or nil. Its name is the
// target, "HOST:PORT", or "HOST" for the port of xdsbuild.DefaultPort. Hosts in the client's own
// namespace also have short names.
func (st *state) grpcListener(p *proxy, name string) *listenerv3.Listener {
	port, host, ok := envoy.ParseListenerName(name)
	if !ok {
		return nil
	}
	for _, h := range []registry.Hostname{host, completed(host, p.Namespace, st.settings.Domain)} {
		number := port
		if number == 0 {
			scope := st.scopeOf(p)
			svc := scope.Service(h)
			if svc != nil {
				_, svc = mesh.Concrete(svc, scope.Service)
			}
			number = defaultPort(svc)
		}
		if _, svc := st.grpcService(p, h, number); svc != nil {
			address := registry.UnspecifiedAddress
			if all := addressesOf(svc, p); len(all) > 0 {
				address = strings.Trim(all[0], "[]")
			}
			return xdsbuild.GRPCListener(name, envoy.ClusterName(number, svc.Host), address, number)
		}
	}
	return nil
}

// completed returns the full host name of a short name in a namespace: "NAME", "NAME.NAMESPACE" or
// "NAME.NAMESPACE.svc".
func completed(host registry.Hostname, namespace, domain string) registry.Hostname {
	name := strings.TrimSuffix(string(hostname.Lower(host)), ".svc")
	if label, rest, dotted := strings.Cut(name, "."); dotted && rest == namespace {
		name = label
	}
	if strings.Contains(name, ".") {
		return host
	}
	return registry.Hostname(name + "." + namespace + ".svc." + domain)
}

// defaultPort returns the port of a target without a port, or 0 if there is none.
func defaultPort(svc *mesh.Service) uint32 {
	if svc == nil {
		return 0
	}
	all := mesh.NewService(svc.Of).Ports
	i := slices.IndexFunc(all, func(p mesh.ServicePort) bool { return p.Protocol == registry.ProtocolGRPC })
	switch {
	case len(all) == 1:
		return all[0].Number
	case i >= 0:
		return all[i].Number
	default:
		return 0
	}
}
