// SPDX-License-Identifier: Apache-2.0

package gatewayapi

import (
	"maps"
	"net"
	"slices"
	"strings"

	networking "istio.io/api/networking/v1alpha3"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/pilotkit/pilotkit/internal/envoycheck/certificates"
)

// namespace contains the relevant fields of a Namespace.
type namespace struct{ labels map[string]string }

// namespaceOfObject adds the label that an API server sets on each Namespace.
func namespaceOfObject(o *corev1.Namespace) *namespace {
	labels := maps.Clone(o.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	labels[corev1.LabelMetadataName] = o.Name
	return &namespace{labels}
}

// service contains the relevant fields of a Service.
type service struct {
	// ports contains the names of the ports by number.
	ports map[int32]string
	// addresses are the cluster IPs, and external the addresses of the load balancer and the
	// externalIPs.
	addresses, external []string
	loadBalancer        bool
	exportTo            []string
	labels              map[string]string // only the waypoint labels
}

func serviceOf(o *corev1.Service) *service {
	s := &service{ports: map[int32]string{}, loadBalancer: o.Spec.Type == corev1.ServiceTypeLoadBalancer}
	for to := range strings.SplitSeq(o.Annotations[annotationExportTo], ",") {
		if to = strings.TrimSpace(to); to != "" {
			s.exportTo = append(s.exportTo, to)
		}
	}
	for i := range o.Spec.Ports {
		s.ports[o.Spec.Ports[i].Port] = o.Spec.Ports[i].Name
	}
	for _, address := range o.Spec.ClusterIPs {
		if net.ParseIP(address) != nil {
			s.addresses = append(s.addresses, address)
		}
	}
	if len(s.addresses) == 0 && net.ParseIP(o.Spec.ClusterIP) != nil {
		s.addresses = []string{o.Spec.ClusterIP}
	}
	for _, at := range o.Status.LoadBalancer.Ingress {
		if at.IP != "" {
			s.external = append(s.external, at.IP)
		} else if at.Hostname != "" {
			s.external = append(s.external, at.Hostname)
		}
	}
	s.external = append(s.external, o.Spec.ExternalIPs...)
	for _, name := range []string{labelUseWaypoint, labelUseWaypointNamespace} {
		if value, ok := o.Labels[name]; ok {
			if s.labels == nil {
				s.labels = map[string]string{}
			}
			s.labels[name] = value
		}
	}
	return s
}

// portNamed returns the lowest number of a port with a name.
func (s *service) portNamed(name string) (number int32, ok bool) {
	for at, of := range s.ports {
		if of == name && (!ok || at < number) {
			number, ok = at, true
		}
	}
	return number, ok
}

// slice contains the relevant fields of an EndpointSlice.
type slice struct {
	service Key
	// ports are the names of the ports that some endpoint serves.
	ports []string
}

func sliceOf(o *discoveryv1.EndpointSlice) *slice {
	s := &slice{service: Key{o.Namespace, o.Labels[discoveryv1.LabelServiceName]}}
	usable := slices.ContainsFunc(o.Endpoints, func(e discoveryv1.Endpoint) bool {
		return len(e.Addresses) > 0 && (e.Conditions.Ready == nil || *e.Conditions.Ready)
	})
	for i := range o.Ports {
		if usable {
			s.ports = append(s.ports, deref(o.Ports[i].Name, ""))
		}
	}
	return s
}

// secret tells whether a Secret is usable. It contains no secret data.
type secret struct {
	// certificate is the problem of the server certificate with its key, and authority the problem
	// of the CA certificate; "" if there is none.
	certificate, authority string
}

func secretOf(o *corev1.Secret) *secret {
	s := &secret{}
	certificate, key := o.Data[corev1.TLSCertKey], o.Data[corev1.TLSPrivateKeyKey]
	if len(certificate) == 0 && len(key) == 0 { // the keys of Istio's own Secrets
		certificate, key = o.Data["cert"], o.Data["key"]
	}
	if len(certificate) == 0 || len(key) == 0 {
		s.certificate = "has no certificate with a key"
	} else if certificates.CheckPair(certificate, key) != nil {
		s.certificate = "has a malformed certificate or key"
	}
	s.authority = badAuthority(o.Data["ca.crt"], o.Data["cacert"])
	return s
}

// badAuthority returns the problem of a CA certificate, which is in one of two fields, or "".
func badAuthority(data, otherwise []byte) string {
	if len(data) == 0 {
		data = otherwise
	}
	switch {
	case len(data) == 0:
		return "has no ca.crt"
	case !certificates.AreAuthorities(data):
		return "has a malformed ca.crt"
	default:
		return ""
	}
}

// configMap tells whether a ConfigMap is usable.
type configMap struct{ authority string }

func configMapOf(o *corev1.ConfigMap) *configMap {
	return &configMap{badAuthority([]byte(o.Data["ca.crt"]), []byte(o.Data["cacert"]))}
}

func sameServiceEntry(a, b *ServiceEntry) bool {
	return slices.Equal(a.Spec.GetHosts(), b.Spec.GetHosts()) && slices.Equal(a.Spec.GetExportTo(), b.Spec.GetExportTo()) &&
		slices.EqualFunc(a.Spec.GetPorts(), b.Spec.GetPorts(), func(p, q *networking.ServicePort) bool {
			return p.GetNumber() == q.GetNumber() && p.GetName() == q.GetName()
		})
}

// portNamed returns the lowest number of a port with a name.
func (s *ServiceEntry) portNamed(name string) (number int32, ok bool) {
	for _, p := range s.Spec.GetPorts() {
		if n := int32(p.GetNumber()); p.GetName() == name && (!ok || n < number) { //nolint:gosec // 1 to 65535
			number, ok = n, true
		}
	}
	return number, ok
}

// exportedTo reports whether a namespace sees the hosts of an owner's Service or ServiceEntry, by
// Istio's exportTo.
func exportedTo(to, byDefault []string, owner, ns string) bool {
	if len(to) == 0 {
		to = byDefault
	}
	return len(to) == 0 || slices.Contains(to, "*") || slices.Contains(to, ns) || slices.Contains(to, ".") && ns == owner
}

// gatewayOfSet returns the Gateway that a ListenerSet references, or the zero Key if its parent is of another
// kind.
func gatewayOfSet(o *gatewayv1.ListenerSet) Key {
	parent := &o.Spec.ParentRef
	if groupOf(parent.Group, gatewayv1.GroupName) != gatewayv1.GroupName || kindOf(parent.Kind, string(KindGateway)) != string(KindGateway) {
		return Key{}
	}
	return Key{namespaceOf(parent.Namespace, o.Namespace), string(parent.Name)}
}

// deref returns the value of p, or otherwise if p is nil.
func deref[T any](p *T, otherwise T) T {
	if p == nil {
		return otherwise
	}
	return *p
}
