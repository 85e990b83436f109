// SPDX-License-Identifier: Apache-2.0

package ingress

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
)

// Key identifies an object of a namespaced kind.
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

// Change is the new state of one object, or of the mesh. Create it with Set, Delete or SetMesh; the
// zero value changes nothing.
type Change struct {
	apply func(*Converter)
}

// Set returns the change of an object to its present state, which may be its first. The object must
// not be modified afterwards. The Converter reads only these parts of its metadata: the name, the
// namespace, the creation time, the annotation kubernetes.io/ingress.class and the label istio.
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

// Delete returns the deletion of an object, which need not exist. The namespace is ignored for
// cluster-scoped kinds.
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

// class contains the relevant fields of an IngressClass.
type class struct{ ours bool }

// service contains the relevant fields of a Service.
type service struct {
	// ports contains the numbers of the named ports.
	ports map[string]uint32
	// addresses are the external addresses.
	addresses []string
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

// pod contains the relevant fields of a Pod.
type pod struct {
	label   string // the value of gatewayLabel
	node    string
	running bool
}

func podOf(o *corev1.Pod) *pod {
	return &pod{o.Labels[gatewayLabel], o.Spec.NodeName, o.Status.Phase == corev1.PodRunning}
}

// externalAddresses returns the external addresses of a node, never nil.
func externalAddresses(o *corev1.Node) []string {
	out := []string{}
	for _, a := range o.Status.Addresses {
		if a.Type == corev1.NodeExternalIP && a.Address != "" && !slices.Contains(out, a.Address) {
			out = append(out, a.Address)
		}
	}
	return out
}
