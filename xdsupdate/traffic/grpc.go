// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	rbacv3 "github.com/envoyproxy/go-control-plane/envoy/config/rbac/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/proto"
	security "istio.io/api/security/v1beta1"

	"github.com/pilotkit/pilotkit/internal/xdsbuild"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/hostname"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/mesh"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/objects"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/rbac"
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
	if rules.of != nil || e.Service(host) != nil {
		b.addService(svc, port, bothDomains, rules)
	}
	return &routev3.RouteConfiguration{Name: name, VirtualHosts: b.hosts}, rules.leftOut
}

// grpcService returns the service with a port, and the egress listener that contains it. A listener
// without the service stands for a host without a service, which only VirtualServices route (Istio
// 1.30): the client sees the service as a destination.
func (st *state) grpcService(p *proxy, host registry.Hostname, port uint32) (*mesh.Egress, *mesh.Service) {
	scope := st.scopeOf(p)
	e := scope.EgressFor(port)
	if e == nil {
		return nil, nil
	}
	svc := e.Service(host)
	switch {
	case svc != nil:
		_, svc = mesh.Concrete(svc, e.Service)
	case port == unknownHostPort && len(e.VirtualServicesOf(hostname.Lower(host))) > 0:
		svc = scope.Service(host)
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

// tlsModeLabel says that a workload has a certificate of the mesh if its value is "istio".
const (
	tlsModeLabel = "security.istio.io/tlsMode"
	tlsModeIstio = "istio"
)

// serverListener returns the listener of a gRPC server by its name, or nil, and the errors for
// policies that deny more than they specify. A server has a listener for each port that a service
// in its namespace forwards to.
func (st *state) serverListener(p *proxy, name string) (*listenerv3.Listener, []error) {
	at, _, ok := xdsbuild.ParseInboundName(name)
	if !ok || len(p.server) == 0 {
		return nil, nil
	}
	port := uint32(at.Port())
	all := st.workloads.At(p.Namespace, p.server)
	if !slices.ContainsFunc(all, func(w mesh.Workload) bool { return servesOn(w, port) }) {
		return nil, nil
	}
	labels := labelsOf(all)
	guard := st.serverProtectionOf(p, labels)
	_, mutual := st.mutualTLSBy(p.Namespace, labels, port)
	server := xdsbuild.GRPCServer{MutualTLS: mutual, Filters: guard.http.list}
	if err := guard.http.refused; err != nil { // no other filter applies without the policies
		server.Filters = []*hcm.HttpFilter{denyAll()}
		return server.Listener(name, at), append(slices.Clip(guard.problems), fmt.Errorf("all calls are denied: %w", err))
	}
	return server.Listener(name, at), guard.problems
}

// servesOn reports whether a service port forwards to a port of the workload.
func servesOn(w mesh.Workload, port uint32) bool {
	return w.Endpoint.EndpointPort == port &&
		slices.ContainsFunc(w.Service.Ports, func(p *registry.Port) bool { return p != nil && xdsbuild.Serves(w.Endpoint, p) })
}

// labelsOf returns the distinct label sets of workloads, in the order of their services. All
// workloads must be the same server (S94).
func labelsOf(all []mesh.Workload) (out []registry.Labels) {
	for _, w := range all {
		labels := w.Endpoint.Attributes().Labels
		if !slices.ContainsFunc(out, labels.Equal) {
			out = append(out, labels)
		}
	}
	return out
}

// mutualTLSBy returns the policy that makes a server accept only mutual TLS on a port, if any, instead
// of plain text. A gRPC server cannot accept both, so PERMISSIVE means mutual TLS for workloads with the label of a
// certificate, and plain text for all others (S10).
func (st *state) mutualTLSBy(namespace string, sets []registry.Labels, port uint32) (by objects.PeerMode, mutual bool) {
	for _, labels := range sets {
		by = st.PeerMode(namespace, labels, port)
		if by.Mode == objects.Strict || by.Mode == objects.Permissive && labels[tlsModeLabel] == tlsModeIstio {
			return by, true
		}
	}
	return by, false
}

// serverProtectionOf returns the filters of gRPC servers with some label sets.
func (st *state) serverProtectionOf(p *proxy, sets []registry.Labels) *protection {
	if p.leaving != nil {
		return st.newServerProtection(p, sets)
	}
	var key strings.Builder
	fmt.Fprintf(&key, "%s %t", p.Namespace, p.node)
	for _, labels := range sets {
		key.WriteString("\x00" + labels.String())
	}
	return st.serverProtections.Get(key.String(), func() *protection { return st.newServerProtection(p, sets) })
}

// newServerProtection builds the filters: first DENY, which includes CUSTOM policies, then ALLOW.
// If there are several label sets, DENY policies may match any of them, and ALLOW policies must
// match the first (S94).
func (st *state) newServerProtection(p *proxy, sets []registry.Labels) *protection {
	b := &protectionBuilder{state: st, proxy: p}
	for _, a := range st.AuthorizationPoliciesIn(p.Namespace) {
		which := slices.IndexFunc(sets, a.Selects)
		if which < 0 || which > 0 && a.Spec.GetAction() == security.AuthorizationPolicy_ALLOW {
			continue
		}
		b.apply(a)
	}
	form := rbac.GRPC
	if p.node {
		form = rbac.GRPCNode
	}
	deny, allow := b.translator(form).ForServer(b.policies)
	b.addServer(rbac.DenyFilter, deny)
	b.addServer(rbac.HTTPFilter, allow)
	b.boundServer()
	for _, f := range b.http { // checked once for all listeners
		b.refused = errors.Join(b.refused, checkOf(form)(f))
	}
	return b.finish()
}

// addServer adds a filter of a gRPC server, unless rules is nil.
func (b *protectionBuilder) addServer(name string, rules *rbacv3.RBAC) {
	if rules != nil {
		b.add(name, rbac.Rules{Enforced: rules}.HTTP())
	}
}

// boundServer denies all calls if the policies exceed the size limit of a listener.
func (b *protectionBuilder) boundServer() {
	bytes := 0
	for _, f := range b.http {
		bytes += proto.Size(f)
	}
	if limit := b.settings.limits.SharedBytes; exceeds(bytes, limit) {
		b.http = []*hcm.HttpFilter{denyAll()}
		b.problems = append(b.problems, fmt.Errorf("all calls are denied: the AuthorizationPolicies have more than %d bytes", limit))
	}
}

// denyAll returns a filter that denies every request.
func denyAll() *hcm.HttpFilter {
	return xdsbuild.HTTPFilter(rbac.DenyFilter, rbac.Rules{Enforced: rbac.Nobody()}.HTTP())
}
