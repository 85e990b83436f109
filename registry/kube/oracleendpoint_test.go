// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/pilotkit/pilotkit/registry"
)

// modelEndpoint is an endpoint with where it comes from.
type modelEndpoint struct {
	record record
	// slice is the key of the slice, "" for that of a workload.
	slice string
	// pod is the key of the target; "" if the endpoint names none.
	pod string
	// key is what only one endpoint of a service can have.
	key string
	// claims is how many endpoints of slices claim the key.
	claims int
	// shaky: the recorded health depends on more than the conditions.
	shaky bool
	// second: the endpoint names no pod, and has not the first address of the one that
	// it is of.
	second bool
}

func endpointKey(r record) string {
	a := r.strings("addresses")
	if len(a) == 0 {
		return "/" + r.str("servicePortName")
	}
	return a[0] + "/" + r.str("servicePortName")
}

// endpoints returns the endpoints of a service.
func (w *world) endpoints(s *corev1.Service) []modelEndpoint {
	if isHidden(s) {
		return nil
	}
	return w.listed(s)
}

// latent returns the endpoints that are not shown: the endpoints of hidden services, and the
// endpoints in slices of missing services.
func (w *world) latent() map[indexKey][]modelEndpoint {
	out := map[indexKey][]modelEndpoint{}
	add := func(s *corev1.Service) {
		k := indexKey{w.hostname(s.Namespace, s.Name), s.Namespace, w.shard()}
		out[k] = w.listed(s)
	}
	for _, s := range w.services {
		if isHidden(s) {
			add(s)
		}
	}
	for _, slice := range w.slices {
		if name := slice.Labels["kubernetes.io/service-name"]; name != "" && w.services[slice.Namespace+"/"+name] == nil {
			add(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: slice.Namespace, Name: name}})
		}
	}
	return out
}

// listed returns the endpoints that a service has, be it hidden or not.
func (w *world) listed(s *corev1.Service) []modelEndpoint {
	winners := map[string]modelEndpoint{}
	claims := map[string]int{}
	for _, slice := range w.slicesOf(s) {
		for _, e := range w.sliceEndpoints(slice, s) {
			claims[e.key]++
			old, taken := winners[e.key]
			if !taken || old.record.str("healthStatus") != "Healthy" && e.record.str("healthStatus") == "Healthy" {
				winners[e.key] = e
			}
		}
	}
	var out []modelEndpoint
	for k, e := range winners {
		e.claims = claims[k]
		out = append(out, e)
	}
	return append(out, w.foreignEndpoints(s)...)
}

// slicesOf returns the slices of a service, by name.
func (w *world) slicesOf(s *corev1.Service) []*discoveryv1.EndpointSlice {
	if w.ofService == nil {
		w.ofService = map[string][]*discoveryv1.EndpointSlice{}
		for _, k := range slices.Sorted(maps.Keys(w.slices)) {
			of := w.slices[k].Namespace + "/" + w.slices[k].Labels["kubernetes.io/service-name"]
			w.ofService[of] = append(w.ofService[of], w.slices[k])
		}
	}
	return w.ofService[s.Namespace+"/"+s.Name]
}

func belongs(slice *discoveryv1.EndpointSlice, s *corev1.Service) bool {
	return slice.Namespace == s.Namespace && slice.Labels["kubernetes.io/service-name"] == s.Name
}

func (w *world) sliceEndpoints(slice *discoveryv1.EndpointSlice, s *corev1.Service) []modelEndpoint {
	_, imported := slice.Labels["multicluster.kubernetes.io/service-name"]
	if !belongs(slice, s) || imported || slice.AddressType == discoveryv1.AddressTypeFQDN {
		return nil
	}
	type listed struct {
		discoveryv1.Endpoint
		address string
	}
	var all []listed
	for _, e := range slice.Endpoints {
		for _, a := range e.Addresses {
			all = append(all, listed{e, a})
		}
	}
	// Of several that have one address in the end, that which is listed under the lower one counts.
	slices.SortStableFunc(all, func(a, b listed) int { return strings.Compare(a.address, b.address) })
	var out []modelEndpoint
	for _, e := range all {
		pod, target, ok := w.podOf(slice.Namespace, e.Endpoint, e.address)
		if !ok {
			continue
		}
		for _, p := range slice.Ports {
			r := w.sliceEndpoint(s, e.Endpoint, p, pod, e.address)
			out = append(out, modelEndpoint{
				record: r, slice: slice.Namespace + "/" + slice.Name, pod: target, key: endpointKey(r),
				shaky:  r.str("healthStatus") != "Healthy",
				second: target == "" && pod != nil && pod.Status.PodIP != e.address,
			})
		}
	}
	return out
}

// podOf returns the pod of an endpoint, and the key of its target; false if the
// target does not exist.
func (w *world) podOf(namespace string, e discoveryv1.Endpoint, address string) (*corev1.Pod, string, bool) {
	if e.TargetRef != nil && e.TargetRef.Kind == "Pod" {
		ns := e.TargetRef.Namespace
		if ns == "" {
			ns = namespace
		}
		k := ns + "/" + e.TargetRef.Name
		return w.pods[k], k, w.pods[k] != nil
	}
	var best *corev1.Pod
	for _, p := range w.pods {
		if p.Namespace == namespace && isUsable(p) && slices.Contains(podAddresses(p), address) && (best == nil || preferred(p, best)) {
			best = p
		}
	}
	return best, "", true
}

func isTrue(b *bool, otherwise bool) bool {
	if b == nil {
		return otherwise
	}
	return *b
}

func health(s *corev1.Service, e discoveryv1.Endpoint) string {
	isReady := isTrue(e.Conditions.Ready, true)
	going := isTrue(e.Conditions.Terminating, false)
	sticky := s.Labels["istio.io/persistent-session"] != "" || s.Labels["istio.io/persistent-session-header"] != ""
	switch {
	case isReady:
		return "Healthy"
	case going && sticky && isTrue(e.Conditions.Serving, isReady):
		return "Draining"
	case going:
		return "Terminating"
	default:
		return "UnHealthy"
	}
}

func (w *world) sliceEndpoint(s *corev1.Service, e discoveryv1.Endpoint, p discoveryv1.EndpointPort, pod *corev1.Pod, address string) record {
	out := w.attributes(pod, address)
	addresses := []string{address}
	if pod != nil && w.dualStack && len(podAddresses(pod)) > 1 && len(vips(s)) > 1 {
		addresses = podAddresses(pod)
	}
	out["addresses"], out["healthStatus"] = addresses, health(s, e)
	if p.Name != nil {
		out["servicePortName"] = *p.Name
	}
	if p.Port != nil {
		out["endpointPort"] = *p.Port
	}
	return plain(out).(map[string]any)
}

func (w *world) foreignEndpoints(s *corev1.Service) []modelEndpoint {
	if resolution(s) != "ClientSide" || len(s.Spec.Selector) == 0 {
		return nil
	}
	var out []modelEndpoint
	for _, wi := range w.foreign {
		own := wi.Endpoint.Attributes().Labels
		if wi.Namespace != s.Namespace || len(own) == 0 || !labels.SelectorFromSet(s.Spec.Selector).Matches(labels.Set(own)) {
			continue
		}
		for _, p := range s.Spec.Ports {
			number, ok := foreignPort(p, wi)
			if !ok {
				continue
			}
			ep := *wi.Endpoint
			ep.EndpointPort, ep.ServicePortName = number, p.Name
			r := newEndpointView(&ep)
			out = append(out, modelEndpoint{record: r, key: endpointKey(r) + " of " + wi.Name})
		}
	}
	return out
}

func foreignPort(p corev1.ServicePort, wi *registry.WorkloadInstance) (uint32, bool) {
	switch {
	case p.TargetPort.Type == intstr.String:
		n, ok := wi.PortMap[p.TargetPort.StrVal]
		return n, ok && n != 0
	case p.TargetPort.IntVal == 0:
		return uint32(p.Port), true
	case p.Name != "" && wi.PortMap[p.Name] != 0:
		return wi.PortMap[p.Name], true
	default:
		return uint32(p.TargetPort.IntVal), true
	}
}
