// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/pilotkit/pilotkit/registry"
)

// objectKey identifies an object of a kind.
type objectKey struct{ namespace, name string }

func (k objectKey) compare(l objectKey) int {
	if c := strings.Compare(k.namespace, l.namespace); c != 0 {
		return c
	}
	return strings.Compare(k.name, l.name)
}

// service has the fields of a Service that the registry keeps. It is immutable.
type service struct {
	objectKey
	created     time.Time
	version     string
	labels      registry.Labels
	annotations map[string]string // only annotations that the registry reads
	kind        corev1.ServiceType
	selector    registry.Labels
	ports       []servicePort
	// addresses are the addresses inside the cluster, none for a headless service.
	addresses    []string
	headless     bool
	externalName string // only of type ExternalName
	// external are the external addresses, except for addresses of nodes.
	external            []string
	nodeLocal           bool
	publishNotReady     bool
	trafficDistribution string
}

type servicePort struct {
	name     string
	number   uint32
	protocol registry.Protocol
	// transport is TCP, UDP or SCTP.
	transport string
	// target is the number of the target port, or 0 if the port has a targetName.
	target     uint32
	targetName string
	nodePort   uint32
}

// convertService returns the fields that are kept of a Service.
func convertService(s *corev1.Service) *service {
	out := &service{
		objectKey: objectKey{canonical(s.Namespace), s.Name},
		created:   s.CreationTimestamp.Time, version: s.ResourceVersion, labels: s.Labels,
		annotations: keep(s.Annotations, annotationExportTo, annotationIdentities, annotationAccounts, annotationTraffic, annotationNodes),
		kind:        s.Spec.Type, selector: s.Spec.Selector,
		headless: s.Spec.ClusterIP == headless,
		external: externalAddresses(s), publishNotReady: s.Spec.PublishNotReadyAddresses,
		nodeLocal: s.Spec.InternalTrafficPolicy != nil && *s.Spec.InternalTrafficPolicy == corev1.ServiceInternalTrafficPolicyLocal,
	}
	if s.Spec.Type == corev1.ServiceTypeExternalName {
		out.externalName = s.Spec.ExternalName
	}
	if s.Spec.TrafficDistribution != nil {
		out.trafficDistribution = *s.Spec.TrafficDistribution
	}
	if a := s.Spec.ClusterIP; a != "" && a != headless {
		out.addresses = []string{a}
		if len(s.Spec.ClusterIPs) > 1 {
			out.addresses = s.Spec.ClusterIPs
		}
	}
	for i := range s.Spec.Ports {
		out.ports = append(out.ports, convertServicePort(&s.Spec.Ports[i]))
	}
	return out
}

func convertServicePort(p *corev1.ServicePort) servicePort {
	out := servicePort{
		name: p.Name, number: uint32(p.Port), nodePort: uint32(p.NodePort), transport: transport(p.Protocol),
		protocol: registry.KubernetesPort{Transport: string(p.Protocol), Name: p.Name, AppProtocol: p.AppProtocol, Number: p.Port}.Protocol(),
	}
	if p.TargetPort.Type == intstr.String {
		out.targetName = p.TargetPort.StrVal
	} else {
		out.target = uint32(p.TargetPort.IntVal)
	}
	return out
}

// transport returns the name of a transport protocol. The default is TCP.
func transport(p corev1.Protocol) string {
	if p == "" {
		return string(corev1.ProtocolTCP)
	}
	return string(p)
}

// externalAddresses returns the addresses of the load balancer and the external IPs of any type.
// For an ingress of the load balancer with an address, the host name is ignored.
func externalAddresses(s *corev1.Service) []string {
	var out []string
	if s.Spec.Type == corev1.ServiceTypeLoadBalancer {
		for _, in := range s.Status.LoadBalancer.Ingress {
			switch {
			case in.IP != "":
				out = append(out, in.IP)
			case in.Hostname != "":
				out = append(out, in.Hostname)
			}
		}
	}
	return append(out, s.Spec.ExternalIPs...)
}

// keep returns the entries of some keys, nil if there are none.
func keep(all map[string]string, keys ...string) map[string]string {
	var out map[string]string
	for _, k := range keys {
		if v, ok := all[k]; ok {
			if out == nil {
				out = map[string]string{}
			}
			out[k] = v
		}
	}
	return out
}
