// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"cmp"
	"slices"
	"strings"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/registry"
)

// gateway is a Gateway. It is immutable.
type gateway struct {
	stored
	spec *networking.Gateway
	// owner is the Kubernetes Gateway that this Gateway was generated from, whose proxies alone it
	// configures. It is zero for other Gateways. The services are those in front of the proxies.
	owner    objectName
	services []string
	// certificate is the credential that its proxies present to backends, or empty.
	certificate string
}

// Annotations of configs generated from Kubernetes Gateways (Istio 1.30).
const (
	gatewaySemanticsAnnotation = "internal.istio.io/gateway-semantics"
	gatewayServiceAnnotation   = "internal.istio.io/gateway-service"
	parentNamespaceAnnotation  = "internal.istio.io/parent-namespace"
)

func newGateway(c *configstore.Config, spec *networking.Gateway) *gateway {
	g := &gateway{stored: newStored(c), spec: spec}
	if name := c.Labels[gatewayLabel]; name != "" && c.Annotations[gatewaySemanticsAnnotation] == "gateway" {
		g.owner = objectName{cmp.Or(c.Annotations[parentNamespaceAnnotation], c.Namespace), name}
		g.services = strings.Split(strings.ToLower(c.Annotations[gatewayServiceAnnotation]), ",")
		g.certificate = c.Annotations[istio.AnnotationBackendCertificate]
	}
	return g
}

// router returns a router with exactly the labels that the Gateway selects.
func (g *gateway) router() *proxy {
	if g.owner == (objectName{}) {
		return &proxy{role: router, namespace: g.namespace, labels: g.spec.GetSelector()}
	}
	return &proxy{role: router, namespace: g.owner.namespace, labels: registry.Labels{gatewayLabel: g.owner.name}}
}

// selects reports whether the Gateway configures a router. A Gateway selects routers of any
// namespace by labels. A Gateway generated from a Kubernetes Gateway selects routers in the
// namespace of the latter that have its label or are endpoints of its services.
func (g *gateway) selects(p *proxy) bool {
	if g.owner == (objectName{}) {
		return registry.Labels(g.spec.GetSelector()).SubsetOf(p.labels)
	}
	return p.namespace == g.owner.namespace && (p.labels[gatewayLabel] == g.owner.name ||
		slices.ContainsFunc(g.services, func(host string) bool { return slices.Contains(p.services, host) }))
}
