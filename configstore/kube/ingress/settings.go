// SPDX-License-Identifier: Apache-2.0

package ingress

import (
	meshconfig "istio.io/api/mesh/v1alpha1"
)

// ControllerName is the controller of the IngressClasses that are ours.
const ControllerName = "istio.io/ingress-controller"

// Options of a Converter. The zero value works.
type Options struct {
	// Namespace is that of the Gateways that are made, of the Service Mesh.Service and of the
	// gateway pods. Default: "istio-system".
	Namespace string
	// Domain ends the host names of Services: "name.namespace.svc.domain". Default:
	// "cluster.local".
	Domain string
}

func (o Options) withDefaults() Options {
	if o.Namespace == "" {
		o.Namespace = "istio-system"
	}
	if o.Domain == "" {
		o.Domain = "cluster.local"
	}
	return o
}

// Mesh is what the configuration of the mesh says about Ingresses.
type Mesh struct {
	// Mode says which Ingresses are ours that have no class: with DEFAULT all of them. With
	// OFF none is ours, whatever its class. Other values mean STRICT.
	Mode meshconfig.MeshConfig_IngressControllerMode
	// Class is the value of the annotation kubernetes.io/ingress.class of our Ingresses. No
	// Ingress is ours by its annotation if it is empty.
	Class string
	// Service is the name of the gateways' Service, whose addresses the statuses have. If it
	// is empty they have those of a gateway pod's node.
	Service string
	// Selector is the value of the label istio of gateway pods. If it is empty, that is the
	// name of the Service, and "ingressgateway" if that is empty, too, or
	// "istio-ingressgateway".
	Selector string
}

// DefaultMesh returns the defaults of Istio 1.30.
func DefaultMesh() Mesh {
	return Mesh{Mode: meshconfig.MeshConfig_STRICT, Class: "istio", Service: "istio-ingressgateway"}
}

// MeshOf returns what a MeshConfig says, in which the defaults have been filled in as in
// DefaultMesh. Nil: DefaultMesh.
func MeshOf(m *meshconfig.MeshConfig) Mesh {
	if m == nil {
		return DefaultMesh()
	}
	return Mesh{
		Mode: m.GetIngressControllerMode(), Class: m.GetIngressClass(),
		Service: m.GetIngressService(), Selector: m.GetIngressSelector(),
	}
}

// gatewayLabel is the label of gateway pods.
const gatewayLabel = "istio"

// gatewayPods returns the value of gatewayLabel that pods must have.
func (m Mesh) gatewayPods() string {
	switch {
	case m.Selector != "":
		return m.Selector
	case m.Service != "" && m.Service != "istio-ingressgateway":
		return m.Service
	default:
		return "ingressgateway"
	}
}
