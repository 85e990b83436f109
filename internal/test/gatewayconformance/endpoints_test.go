// SPDX-License-Identifier: Apache-2.0

package gatewayconformance

import (
	"context"
	"errors"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// managedBy marks the EndpointSlices of the node.
const managedBy = "node.pilotkit.test"

// reconcileSlices brings the EndpointSlices of the Services up to date.
func (n *node) reconcileSlices(ctx context.Context) error {
	services, err := n.informers.Core().V1().Services().Lister().List(labels.Everything())
	if err != nil {
		return err
	}
	present, err := n.informers.Discovery().V1().EndpointSlices().Lister().List(labels.SelectorFromSet(labels.Set{discoveryv1.LabelManagedBy: managedBy}))
	if err != nil {
		return err
	}
	old := map[string]*discoveryv1.EndpointSlice{}
	for _, slice := range present {
		old[slice.Namespace+"/"+slice.Name] = slice
	}
	var errs []error
	for _, s := range services {
		if len(s.Spec.Selector) == 0 {
			continue
		}
		next, err := n.slice(s)
		if err != nil {
			return err
		}
		key := next.Namespace + "/" + next.Name
		errs = append(errs, n.write(ctx, old[key], next))
		delete(old, key)
	}
	for _, slice := range old {
		err := n.client.DiscoveryV1().EndpointSlices(slice.Namespace).Delete(ctx, slice.Name, metav1.DeleteOptions{})
		if !isGone(err) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// write creates or updates an EndpointSlice if it is not as it should be.
func (n *node) write(ctx context.Context, old, next *discoveryv1.EndpointSlice) error {
	slices := n.client.DiscoveryV1().EndpointSlices(next.Namespace)
	if old == nil {
		_, err := slices.Create(ctx, next, metav1.CreateOptions{})
		return err
	}
	if apiequality.Semantic.DeepEqual(old.Endpoints, next.Endpoints) && apiequality.Semantic.DeepEqual(old.Ports, next.Ports) {
		return nil
	}
	update := old.DeepCopy()
	update.Endpoints, update.Ports = next.Endpoints, next.Ports
	_, err := slices.Update(ctx, update, metav1.UpdateOptions{})
	return err
}

// slice returns the EndpointSlice of a Service: the Pods that it selects and that are ready.
func (n *node) slice(s *corev1.Service) (*discoveryv1.EndpointSlice, error) {
	out := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.Namespace, Name: s.Name + "-node",
			Labels: map[string]string{discoveryv1.LabelServiceName: s.Name, discoveryv1.LabelManagedBy: managedBy},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
	}
	if s.Spec.ClusterIP == corev1.ClusterIPNone {
		out.Labels[corev1.IsHeadlessService] = ""
	}
	for _, port := range s.Spec.Ports {
		target := port.TargetPort.IntVal
		if target == 0 {
			target = port.Port
		}
		out.Ports = append(out.Ports, discoveryv1.EndpointPort{
			Name: new(port.Name), Port: new(target), Protocol: new(port.Protocol), AppProtocol: port.AppProtocol,
		})
	}
	pods, err := n.informers.Core().V1().Pods().Lister().Pods(s.Namespace).List(labels.SelectorFromSet(s.Spec.Selector))
	if err != nil {
		return nil, err
	}
	slices.SortFunc(pods, func(a, b *corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	for _, pod := range pods {
		if pod.Status.PodIP == "" || pod.DeletionTimestamp != nil {
			continue
		}
		out.Endpoints = append(out.Endpoints, discoveryv1.Endpoint{
			Addresses: []string{pod.Status.PodIP}, Conditions: discoveryv1.EndpointConditions{Ready: new(true), Serving: new(true), Terminating: new(false)},
			NodeName:  new(nodeName),
			TargetRef: &corev1.ObjectReference{Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
		})
	}
	return out, nil
}
