// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	networking "istio.io/api/networking/v1alpha3"
	security "istio.io/api/security/v1beta1"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
)

// object is an object of one of the kinds in an index. It is immutable. Changes, findings and
// effects of all kinds go through its methods.
type object interface {
	// base returns the properties that objects of all kinds have.
	base() *stored
	// labelKeys returns the keys of the proxy labels that the object depends on. A key may occur
	// twice.
	labelKeys() []string
	// affects adds the resources that depend on the object.
	affects(c *affected)
	// report adds the findings about the object.
	report(f *findings)
	// effects returns the effects of the object.
	effects(f *findings) []Effect
}

// stored contains the properties that objects of all kinds have.
type stored struct {
	objectName
	config *configstore.Config
	// unread lists the unreadable parts of a security policy. A policy with unreadable parts fails
	// closed.
	unread []configstore.Violation
}

func newStored(c *configstore.Config) stored {
	return stored{objectName: objectName{c.Namespace, c.Name}, config: c}
}

// newPolicy returns the common properties of a security policy.
func newPolicy(c *configstore.Config) stored {
	out := newStored(c)
	out.unread = configstore.Unread(c.Spec)
	return out
}

func (s *stored) base() *stored { return s }

// newObject parses a config. The result is nil if the config is nil or of another kind.
func newObject(c *configstore.Config, s *settings) object {
	if c == nil {
		return nil
	}
	switch spec := c.Spec.(type) {
	case *networking.VirtualService:
		return newVirtualService(c, spec, s)
	case *networking.DestinationRule:
		return newDestinationRule(c, spec, s)
	case *networking.Gateway:
		return newGateway(c, spec)
	case *networking.Sidecar:
		return &sidecar{stored: newStored(c), spec: spec, selector: spec.GetWorkloadSelector().GetLabels()}
	case *security.AuthorizationPolicy:
		return newAuthorizationPolicy(c, spec)
	case *security.PeerAuthentication:
		return newPeerAuthentication(c, spec)
	case *security.RequestAuthentication:
		return newRequestAuthentication(c, spec, s)
	default:
		return nil
	}
}

// configIn returns the config of an object, which may be nil.
func configIn(o object) *configstore.Config {
	if o == nil {
		return nil
	}
	return o.base().config
}

// named returns the object of a kind with a name, or nil.
func named[T object](x *index, kind configstore.GroupVersionKind, name objectName) T {
	o, _ := x.objects.Get(configstore.ConfigKey{Kind: kind, Namespace: name.namespace, Name: name.name})
	t, _ := o.(T)
	return t
}

// gatewayNamed returns the Gateway with a name "namespace/name", or nil.
func (x *index) gatewayNamed(name string) *gateway {
	return named[*gateway](x, istio.Gateway, parseObjectName(name, ""))
}

// compareObjects is compareConfigs for objects of one kind.
func compareObjects[T object](a, b T) int { return compareConfigs(a.base().config, b.base().config) }

// objectsOf returns the objects of one kind.
func objectsOf[T object](objects []object) (out []T) {
	for _, o := range objects {
		if t, ok := o.(T); ok {
			out = append(out, t)
		}
	}
	return out
}
