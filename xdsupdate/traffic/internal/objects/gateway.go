// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/registry"
)

// Gateway is a Gateway. It is immutable.
type Gateway struct {
	Stored
	Spec *networking.Gateway
	// Owner is the Kubernetes Gateway that this Gateway was generated from, whose proxies alone it
	// configures. It is zero for other Gateways. The services are those in front of the proxies.
	Owner    ObjectName
	services []string
	// Certificate is the credential that its proxies present to backends, or empty.
	Certificate string
}

// Annotations of configs generated from Kubernetes Gateways (Istio 1.30).
const (
	gatewaySemanticsAnnotation = "internal.istio.io/gateway-semantics"
	gatewayServiceAnnotation   = "internal.istio.io/gateway-service"
	parentNamespaceAnnotation  = "internal.istio.io/parent-namespace"
)

func newGateway(c *configstore.Config, spec *networking.Gateway) *Gateway {
	g := &Gateway{Stored: newStored(c), Spec: spec}
	if name := c.Labels[gatewayLabel]; name != "" && c.Annotations[gatewaySemanticsAnnotation] == "gateway" {
		g.Owner = ObjectName{cmp.Or(c.Annotations[parentNamespaceAnnotation], c.Namespace), name}
		g.services = strings.Split(strings.ToLower(c.Annotations[gatewayServiceAnnotation]), ",")
		g.Certificate = c.Annotations[istio.AnnotationBackendCertificate]
	}
	return g
}

// Router returns a router with exactly the labels that the Gateway selects.
func (g *Gateway) Router() *Proxy {
	if g.Owner == (ObjectName{}) {
		return &Proxy{Role: Router, Namespace: g.Namespace, Labels: g.Spec.GetSelector()}
	}
	return &Proxy{Role: Router, Namespace: g.Owner.Namespace, Labels: registry.Labels{gatewayLabel: g.Owner.Name}}
}

// Selects reports whether the Gateway configures a router. A Gateway selects routers of any
// namespace by labels. A Gateway generated from a Kubernetes Gateway selects routers in the
// namespace of the latter that have its label or are endpoints of its services.
func (g *Gateway) Selects(p *Proxy) bool {
	if g.Owner == (ObjectName{}) {
		return registry.Labels(g.Spec.GetSelector()).SubsetOf(p.Labels)
	}
	return p.Namespace == g.Owner.Namespace && (p.Labels[gatewayLabel] == g.Owner.Name ||
		slices.ContainsFunc(g.services, func(host string) bool { return slices.Contains(p.Services, host) }))
}

// Passes reports whether the Gateway has an AUTO_PASSTHROUGH server.
func (g *Gateway) Passes() bool {
	return g.Passing() > 0
}

// Passing returns the number of AUTO_PASSTHROUGH servers of a Gateway.
func (g *Gateway) Passing() int {
	n := 0
	for _, s := range g.Spec.GetServers() {
		if s.GetTls().GetMode() == networking.ServerTLSSettings_AUTO_PASSTHROUGH {
			n++
		}
	}
	return n
}

// Role is the way a client uses its resources.
type Role uint8

const (
	// SidecarProxy is an Envoy next to a workload. Only its outbound side is configured.
	SidecarProxy Role = iota
	// Router is an Envoy that serves as a gateway.
	Router
	// GRPCClient is a gRPC library that implements xDS. It may also be a server.
	GRPCClient
)

// Proxy contains the properties of a client by which objects select it. It is immutable.
type Proxy struct {
	Role      Role
	Namespace string
	// Labels include the topology labels: region, zone, subzone, network, cluster.
	Labels registry.Labels
	// Services are the hosts, in lower case, of the services that a router is an endpoint of.
	Services []string
}

func (g *Gateway) labelKeys() []string { return slices.Collect(maps.Keys(g.Router().Labels)) }
