// SPDX-License-Identifier: Apache-2.0

package ingress

import (
	meshconfig "istio.io/api/mesh/v1alpha1"
)

// ControllerName is the controller of the IngressClasses that this package handles.
const ControllerName = "istio.io/ingress-controller"

// Options of a Converter. The zero value works.
type Options struct {
	// Namespace is the namespace of the resulting Gateways, of the Service Mesh.Service and of the
	// gateway pods. Default: "istio-system".
	Namespace string
	// Domain is the DNS suffix of the Services' host names: "name.namespace.svc.domain". Default:
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

// Mesh contains the mesh configuration's settings for Ingresses.
type Mesh struct {
	// Mode decides about Ingresses without a class: with DEFAULT all of them are ours. With OFF no
	// Ingress is ours, with or without a class. Other values mean STRICT.
	Mode meshconfig.MeshConfig_IngressControllerMode
	// Class is the value of the annotation kubernetes.io/ingress.class of our Ingresses. If it is
	// empty, no Ingress is ours by its annotation.
	Class string
	// Service is the name of the gateways' Service, whose addresses the statuses contain. If it is
	// empty, they contain the addresses of a gateway pod's node.
	Service string
	// Selector is the value of the label istio of gateway pods. If it is empty, the value is the
	// name of the Service, or "ingressgateway" if Service is empty or "istio-ingressgateway".
	Selector string
}

// DefaultMesh returns the defaults of Istio 1.30.
func DefaultMesh() Mesh {
	return Mesh{Mode: meshconfig.MeshConfig_STRICT, Class: "istio", Service: "istio-ingressgateway"}
}

// MeshOf returns the settings of a MeshConfig whose defaults have been filled in as in DefaultMesh.
// For nil it returns DefaultMesh.
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

// gatewayPods returns the required value of the pods' gatewayLabel.
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
