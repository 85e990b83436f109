// SPDX-License-Identifier: Apache-2.0

package ingress

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
)

// object is a type of objects that an API server has.
type object interface {
	Object
	runtime.Object
	metav1.Object
}

// newSources returns the kinds that are read: of Pods those that may be gateways.
func (c *Cache) newSources(client kubernetes.Interface) []*source {
	networking, core := client.NetworkingV1(), client.CoreV1()
	ingresses := newSource(c, client, "ingresses", networking.Ingresses(metav1.NamespaceAll), "", trimIngress)
	convert := ingresses.change
	ingresses.change = func(o metav1.Object, gone bool) Change {
		change := convert(o, gone)
		return Change{func(converter *Converter) {
			c.show(o, gone)
			change.apply(converter)
		}}
	}
	return []*source{
		ingresses,
		newSource(c, client, "ingressclasses", networking.IngressClasses(), "", trimClass),
		newSource(c, client, "services", core.Services(metav1.NamespaceAll), "", trimService),
		newSource(c, client, "pods", core.Pods(c.converter.opts.Namespace), gatewayLabel, trimPod),
		newSource(c, client, "nodes", core.Nodes(), "", trimNode),
	}
}

func newSource[T object, L runtime.Object](
	c *Cache, client kubernetes.Interface, kind string, from resource[L], labels string, trim func(T),
) *source {
	s := &source{
		cache: c, kind: kind, known: map[Key]metav1.Object{}, optional: slices.Contains(c.opts.Optional, kind),
		change: func(o metav1.Object, gone bool) Change {
			if gone {
				return Delete[T](o.GetNamespace(), o.GetName())
			}
			if object, ok := o.(T); ok {
				return Set(object)
			}
			return Change{}
		},
		trim: func(o any) {
			if object, ok := o.(T); ok {
				trim(object)
			}
		},
	}
	s.example = exampleOf[T]()
	s.from = listWatch(client, from, labels, s)
	return s
}

func exampleOf[T object]() runtime.Object {
	var object T
	switch any(object).(type) {
	case *networkingv1.Ingress:
		return &networkingv1.Ingress{}
	case *networkingv1.IngressClass:
		return &networkingv1.IngressClass{}
	case *corev1.Service:
		return &corev1.Service{}
	case *corev1.Pod:
		return &corev1.Pod{}
	default:
		return &corev1.Node{}
	}
}

// What is read of objects: the rest, which is most of them, is dropped.

func trimMeta(m *metav1.ObjectMeta) {
	*m = metav1.ObjectMeta{
		Namespace: m.Namespace, Name: m.Name, UID: m.UID, ResourceVersion: m.ResourceVersion,
		CreationTimestamp: m.CreationTimestamp, DeletionTimestamp: m.DeletionTimestamp,
		Annotations: m.Annotations, Labels: m.Labels,
	}
}

func trimIngress(o *networkingv1.Ingress) {
	class, annotated := o.Annotations[classAnnotation]
	trimMeta(&o.ObjectMeta)
	o.Labels, o.Annotations = nil, nil
	if annotated {
		o.Annotations = map[string]string{classAnnotation: class}
	}
}

func trimClass(o *networkingv1.IngressClass) {
	trimMeta(&o.ObjectMeta)
	o.Spec = networkingv1.IngressClassSpec{Controller: o.Spec.Controller}
}

func trimService(o *corev1.Service) {
	trimMeta(&o.ObjectMeta)
	o.Labels, o.Annotations = nil, nil
	spec := o.Spec
	o.Spec = corev1.ServiceSpec{Ports: spec.Ports, Type: spec.Type, ExternalName: spec.ExternalName, ExternalIPs: spec.ExternalIPs}
	o.Status = corev1.ServiceStatus{LoadBalancer: o.Status.LoadBalancer}
}

func trimPod(o *corev1.Pod) {
	label := o.Labels[gatewayLabel]
	trimMeta(&o.ObjectMeta)
	o.Annotations, o.Labels = nil, map[string]string{gatewayLabel: label}
	o.Spec, o.Status = corev1.PodSpec{NodeName: o.Spec.NodeName}, corev1.PodStatus{Phase: o.Status.Phase}
}

func trimNode(o *corev1.Node) {
	trimMeta(&o.ObjectMeta)
	o.Labels, o.Annotations = nil, nil
	o.Spec, o.Status = corev1.NodeSpec{}, corev1.NodeStatus{Addresses: o.Status.Addresses}
}
