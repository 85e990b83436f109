// SPDX-License-Identifier: Apache-2.0

package ingress

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
)

// Key names an object of a kind with namespaces.
type Key struct{ Namespace, Name string }

// String returns "namespace/name".
func (k Key) String() string { return k.Namespace + "/" + k.Name }

// Compare orders by namespace and name.
func (k Key) Compare(l Key) int {
	return cmp.Or(strings.Compare(k.Namespace, l.Namespace), strings.Compare(k.Name, l.Name))
}

// Object is one of the types of objects that a Converter reads.
type Object interface {
	*networkingv1.Ingress | *networkingv1.IngressClass | *corev1.Service | *corev1.Pod | *corev1.Node
}

// Change is the new state of one object, or of the mesh. Make it with Set, Delete or
// SetMesh; the zero value changes nothing.
type Change struct {
	apply func(*Converter)
}

// Set returns the change of an object to its present state, also if it is new. The
// object must not be modified any more. Of its metadata the name, the namespace, the
// creation time, the annotation kubernetes.io/ingress.class and the label istio are read.
func Set[T Object](object T) Change {
	switch o := any(object).(type) {
	case *networkingv1.Ingress:
		return Change{func(c *Converter) { c.setIngress(Key{o.Namespace, o.Name}, o) }}
	case *networkingv1.IngressClass:
		return Change{func(c *Converter) { c.setClass(o.Name, &class{ours: o.Spec.Controller == ControllerName}) }}
	case *corev1.Service:
		return Change{func(c *Converter) { c.setService(Key{o.Namespace, o.Name}, serviceOf(o)) }}
	case *corev1.Pod:
		return Change{func(c *Converter) { c.setPod(Key{o.Namespace, o.Name}, podOf(o)) }}
	case *corev1.Node:
		return Change{func(c *Converter) { c.setNode(o.Name, externalAddresses(o)) }}
	}
	return Change{}
}

// Delete returns the change of an object's absence, also if it was never there. The
// namespace of what has none does not count.
func Delete[T Object](namespace, name string) Change {
	var object T
	switch any(object).(type) {
	case *networkingv1.Ingress:
		return Change{func(c *Converter) { c.setIngress(Key{namespace, name}, nil) }}
	case *networkingv1.IngressClass:
		return Change{func(c *Converter) { c.setClass(name, nil) }}
	case *corev1.Service:
		return Change{func(c *Converter) { c.setService(Key{namespace, name}, nil) }}
	case *corev1.Pod:
		return Change{func(c *Converter) { c.setPod(Key{namespace, name}, nil) }}
	case *corev1.Node:
		return Change{func(c *Converter) { c.setNode(name, nil) }}
	}
	return Change{}
}

// SetMesh returns the change of the mesh's settings.
func SetMesh(m Mesh) Change { return Change{func(c *Converter) { c.setMesh(m) }} }

// class is what counts of an IngressClass.
type class struct{ ours bool }

// service is what counts of a Service.
type service struct {
	// ports are those that have names.
	ports map[string]uint32
	// addresses are those by which it is reached from outside.
	addresses []string
}

// namedPorts returns the ports that have names; none of a Service that does not exist.
func (s *service) namedPorts() map[string]uint32 {
	if s == nil {
		return nil
	}
	return s.ports
}

func serviceOf(o *corev1.Service) *service {
	s := &service{}
	for i := range o.Spec.Ports {
		if p := &o.Spec.Ports[i]; p.Name != "" {
			if s.ports == nil {
				s.ports = make(map[string]uint32, len(o.Spec.Ports))
			}
			s.ports[p.Name] = uint32(p.Port) //nolint:gosec // 1 to 65535
		}
	}
	if o.Spec.Type == corev1.ServiceTypeExternalName {
		s.addresses = []string{o.Spec.ExternalName}
		return s
	}
	for _, at := range o.Status.LoadBalancer.Ingress {
		s.addresses = append(s.addresses, cmp.Or(at.IP, at.Hostname))
	}
	s.addresses = append(s.addresses, o.Spec.ExternalIPs...)
	return s
}

// pod is what counts of a Pod.
type pod struct {
	label   string // the value of gatewayLabel
	node    string
	running bool
}

func podOf(o *corev1.Pod) *pod {
	return &pod{o.Labels[gatewayLabel], o.Spec.NodeName, o.Status.Phase == corev1.PodRunning}
}

// externalAddresses returns those of a node, which are not nil.
func externalAddresses(o *corev1.Node) []string {
	out := []string{}
	for _, a := range o.Status.Addresses {
		if a.Type == corev1.NodeExternalIP && a.Address != "" && !slices.Contains(out, a.Address) {
			out = append(out, a.Address)
		}
	}
	return out
}
