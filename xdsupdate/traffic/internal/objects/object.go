// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	networking "istio.io/api/networking/v1alpha3"
	security "istio.io/api/security/v1beta1"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/registry"
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

// CompareConfigs is the order of objects of one kind: by age, the oldest first, then by name, then
// by namespace (Istio 1.30).
func CompareConfigs(a, b *configstore.Config) int {
	return cmp.Or(
		a.CreationTimestamp.Compare(b.CreationTimestamp),
		strings.Compare(a.Name, b.Name),
		strings.Compare(a.Namespace, b.Namespace),
	)
}

// Kinds returns the kinds of configs that this package implements.
func Kinds() []configstore.GroupVersionKind {
	return []configstore.GroupVersionKind{
		istio.VirtualService, istio.DestinationRule, istio.Gateway, istio.Sidecar, istio.AuthorizationPolicy,
		istio.PeerAuthentication, istio.RequestAuthentication,
	}
}

// SameConfig reports whether two revisions of a config, both possibly nil, are equivalent to
// clients. It ignores status, and labels and annotations that do not change the config's meaning.
func SameConfig(a, b *configstore.Config) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a == b || a.CreationTimestamp.Equal(b.CreationTimestamp) && configstore.EqualMessage(a.Spec, b.Spec) && sameMeaning(a, b)
}

// sameMeaning reports whether the labels and annotations of two revisions agree on the config's
// meaning: path matching, dry run, and the Kubernetes objects that the config was generated from.
func sameMeaning(a, b *configstore.Config) bool {
	for _, key := range []string{
		DryRunAnnotation, gatewaySemanticsAnnotation, gatewayServiceAnnotation, parentNamespaceAnnotation, istio.AnnotationBackendCertificate,
	} {
		if a.Annotations[key] != b.Annotations[key] {
			return false
		}
	}
	return MatchesElements(a) == MatchesElements(b) && StandsForRoutes(a) == StandsForRoutes(b) && standsForPolicies(a) == standsForPolicies(b) &&
		a.Labels[gatewayLabel] == b.Labels[gatewayLabel]
}

// semanticsAnnotation is the origin of a generated VirtualService: "gateway" for objects of the
// Gateway API, "ingress" for Ingresses (Istio 1.30).
const semanticsAnnotation = "internal.istio.io/route-semantics"

// MatchesElements reports whether path prefixes in a config match whole path elements, as in the
// Gateway API and in Ingresses.
func MatchesElements(c *configstore.Config) bool {
	return StandsForRoutes(c) || c.GroupVersionKind == istio.VirtualService && c.Annotations[semanticsAnnotation] == "ingress"
}

// StandsForRoutes reports whether a config is a VirtualService generated from routes of the Gateway
// API.
func StandsForRoutes(c *configstore.Config) bool {
	return c.GroupVersionKind == istio.VirtualService && c.Annotations[semanticsAnnotation] == "gateway"
}

// JoinLabels returns a text that is equal for equal labels.
func JoinLabels(labels registry.Labels) string {
	if len(labels) == 0 {
		return ""
	}
	var b strings.Builder
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		b.WriteString(key)
		b.WriteByte('=')
		b.WriteString(labels[key])
		b.WriteByte(0)
	}
	return b.String()
}
