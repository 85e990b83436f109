// SPDX-License-Identifier: Apache-2.0

package gatewayapi

import gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

// ownership tells how a class's Gateways are handled.
type ownership uint8

const (
	foreign ownership = iota // of another controller, or of an unknown class
	ours
	remote // ours, but run by somebody else: a status without configs
)

// ownershipOf returns the ownership of a class's Gateways. The classes istio and istio-remote need
// no GatewayClass object.
func (v view) ownershipOf(name string) ownership {
	class := v.class(name)
	switch {
	case class == nil && name == classDefault:
		return ours
	case class == nil && name == classRemote:
		return remote
	case class == nil:
		return foreign
	}
	return controlled(class)
}

func controlled(class *gatewayv1.GatewayClass) ownership {
	switch class.Spec.ControllerName {
	case ControllerName:
		return ours
	case remoteController:
		return remote
	default:
		return foreign
	}
}

// computeClassStatus accepts a class of ours. Its parameters are ignored.
func (c *Converter) computeClassStatus(n node) {
	class := c.classes[n.key]
	if class == nil || controlled(class) == foreign {
		c.publishStatus(KindGatewayClass, n.key, nil)
		return
	}
	status := class.Status
	status.Conditions = renew(class.Status.Conditions, class.Generation, nil, good(accepted, "the class is handled"))
	c.publishStatus(KindGatewayClass, n.key, &status)
}
