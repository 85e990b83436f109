// SPDX-License-Identifier: Apache-2.0

package gatewayapi

import gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

// ownership is what a class means for its Gateways.
type ownership uint8

const (
	foreign ownership = iota // of another controller, or of none that is known
	ours
	remote // ours, but run by somebody else: a status, and no config
)

// ownershipOf returns whose the Gateways of a class are. The classes istio and istio-remote
// need no object.
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

// computeClassStatus accepts a class that is ours. Its parameters are not read.
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
