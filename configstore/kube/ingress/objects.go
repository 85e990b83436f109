// SPDX-License-Identifier: Apache-2.0

package ingress

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"

	"github.com/pilotkit/pilotkit/configstore/kube/internal/follow"
)

// object is a type of objects of an API server.
type object interface {
	Object
	runtime.Object
	metav1.Object
}

// newSources returns the sources of the kinds that the cache reads. Of Pods it reads only gateways.
func (c *Cache) newSources(client kubernetes.Interface) []*follow.Source {
	networking, core, all := client.NetworkingV1(), client.CoreV1(), metav1.NamespaceAll
	return []*follow.Source{
		newSource(c, client, networking.Ingresses(all), &networkingv1.Ingress{}, trimIngress, follow.Options{Kind: "ingresses"}),
		newSource(c, client, networking.IngressClasses(), &networkingv1.IngressClass{}, trimClass, follow.Options{Kind: "ingressclasses"}),
		newSource(c, client, core.Services(all), &corev1.Service{}, trimService, follow.Options{Kind: "services"}),
		newSource(c, client, core.Pods(c.converter.opts.Namespace), &corev1.Pod{}, trimPod, follow.Options{Kind: "pods", Labels: gatewayLabel}),
		newSource(c, client, core.Nodes(), &corev1.Node{}, trimNode, follow.Options{Kind: "nodes"}),
	}
}

func newSource[T object, L runtime.Object](
	c *Cache, client any, from follow.Resource[L], example T, trim func(T), o follow.Options,
) *follow.Source {
	o.Optional, o.MaxBackoff, o.Logger = slices.Contains(c.opts.Optional, o.Kind), c.opts.MaxBackoff, c.opts.Logger
	o.Trim = func(o runtime.Object) {
		if object, ok := o.(T); ok {
			trim(object)
		}
	}
	o.Apply = func(batch []follow.Change) {
		changes := make([]Change, 0, len(batch))
		for _, change := range batch {
			changes = append(changes, changeOf[T](c, change))
		}
		c.apply(changes...)
	}
	return follow.New(client, from, example, o)
}

// changeOf returns the change of an object that was set or deleted in the API server.
func changeOf[T object](c *Cache, change follow.Change) Change {
	object, ok := change.Object.(T)
	convert := Delete[T](change.Object.GetNamespace(), change.Object.GetName())
	if ok && !change.Gone {
		convert = Set(object)
	}
	if _, ok := any(object).(*networkingv1.Ingress); !ok {
		return convert
	}
	return Change{func(converter *Converter) {
		c.show(change.Object, change.Gone)
		convert.apply(converter)
	}}
}

// The trim functions drop all fields that are not read, which are most of them.

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
