// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"fmt"
	"strings"

	networking "istio.io/api/networking/v1alpha3"
	security "istio.io/api/security/v1beta1"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
)

// Object is an object of one of the kinds in an index. It is immutable.
type Object interface {
	// Base returns the properties that objects of all kinds have.
	Base() *Stored
	// labelKeys returns the keys of the proxy labels that the object depends on. A key may occur
	// twice.
	labelKeys() []string
}

// Stored contains the properties that objects of all kinds have.
type Stored struct {
	ObjectName
	Config *configstore.Config
	// Unread lists the unreadable parts of a security policy. A policy with unreadable parts fails
	// closed.
	Unread []configstore.Violation
}

func newStored(c *configstore.Config) Stored {
	return Stored{ObjectName: ObjectName{c.Namespace, c.Name}, Config: c}
}

// newPolicy returns the common properties of a security policy.
func newPolicy(c *configstore.Config) Stored {
	out := newStored(c)
	out.Unread = configstore.Unread(c.Spec)
	return out
}

// Base implements Object.
func (s *Stored) Base() *Stored { return s }

// NewObject parses a config. The result is nil if the config is nil or of another kind.
func NewObject(c *configstore.Config, s *Settings) Object {
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
		return &Sidecar{Stored: newStored(c), Spec: spec, Selector: spec.GetWorkloadSelector().GetLabels()}
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

// ConfigIn returns the config of an object, which may be nil.
func ConfigIn(o Object) *configstore.Config {
	if o == nil {
		return nil
	}
	return o.Base().Config
}

// ObjectName is the name of an object.
type ObjectName struct{ Namespace, Name string }

// String returns "namespace/name".
func (n ObjectName) String() string { return n.Namespace + "/" + n.Name }

// parseObjectName parses "namespace/name", or "name" in the given namespace.
func parseObjectName(s, namespace string) ObjectName {
	if ns, name, ok := strings.Cut(s, "/"); ok {
		return ObjectName{ns, name}
	}
	return ObjectName{namespace, s}
}

// Named returns the object of a kind with a name, or nil.
func Named[T Object](x *Index, kind configstore.GroupVersionKind, name ObjectName) T {
	o, _ := x.Objects.Get(configstore.ConfigKey{Kind: kind, Namespace: name.Namespace, Name: name.Name})
	t, _ := o.(T)
	return t
}

// GatewayNamed returns the Gateway with a name "namespace/name", or nil.
func (x *Index) GatewayNamed(name string) *Gateway {
	return Named[*Gateway](x, istio.Gateway, parseObjectName(name, ""))
}

// Compare is CompareConfigs for objects of one kind.
func Compare[T Object](a, b T) int { return CompareConfigs(a.Base().Config, b.Base().Config) }

// Of returns the objects of one kind.
func Of[T Object](objects []Object) (out []T) {
	for _, o := range objects {
		if t, ok := o.(T); ok {
			out = append(out, t)
		}
	}
	return out
}

// Element returns the field of an element of a list.
func Element(list string, i int) string { return fmt.Sprintf("%s[%d]", list, i) }
