// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/pilotkit/pilotkit/registry"
)

// list returns the annotation's parts.
func split(annotation string) []string {
	if annotation == "" {
		return nil
	}
	return strings.Split(annotation, ",")
}

func (w *world) accounts(s *corev1.Service) []string {
	out := split(s.Annotations["alpha.istio.io/canonical-serviceaccounts"])
	for _, a := range split(s.Annotations["alpha.istio.io/kubernetes-serviceaccounts"]) {
		out = append(out, "spiffe://"+w.mesh.TrustDomain+"/ns/"+s.Namespace+"/sa/"+a)
	}
	return out
}

func exportTo(s *corev1.Service) []string {
	found := set{}
	for _, v := range split(s.Annotations["networking.istio.io/exportTo"]) {
		if v = strings.TrimSpace(v); v != "" {
			found[v] = true
		}
	}
	return found.sorted()
}

func isHidden(s *corev1.Service) bool { return slices.Contains(exportTo(s), "~") }

func nearness(v string) string {
	switch strings.ToLower(v) {
	case "preferclose", "prefersamezone":
		return "PreferSameZone"
	case "prefersamenode":
		return "PreferSameNode"
	}
	return ""
}

func (w *world) distribution(s *corev1.Service) string {
	const annotation = "networking.istio.io/traffic-distribution"
	if s.Spec.TrafficDistribution != nil && nearness(*s.Spec.TrafficDistribution) != "" {
		return nearness(*s.Spec.TrafficDistribution)
	}
	if v := s.Annotations[annotation]; v != "" {
		return nearness(v)
	}
	if n := w.namespaces[s.Namespace]; n != nil {
		return nearness(n.Annotations[annotation])
	}
	return ""
}

func vips(s *corev1.Service) []string {
	switch {
	case s.Spec.ClusterIP == "" || s.Spec.ClusterIP == "None":
		return []string{"0.0.0.0"}
	case len(s.Spec.ClusterIPs) > 1:
		return s.Spec.ClusterIPs
	default:
		return []string{s.Spec.ClusterIP}
	}
}

func isNodePort(s *corev1.Service) bool {
	_, ok := s.Annotations["traffic.istio.io/nodeSelector"]
	return ok && s.Spec.Type == corev1.ServiceTypeNodePort
}

func (w *world) external(s *corev1.Service) []string {
	var out []string
	if isNodePort(s) && len(s.Spec.ExternalIPs) == 0 {
		found := set{}
		for _, n := range w.nodes {
			if a := externalAddress(n); a != "" && selectsNode(s, n) {
				found[a] = true
			}
		}
		out = found.sorted()
	}
	if s.Spec.Type == corev1.ServiceTypeLoadBalancer {
		for _, in := range s.Status.LoadBalancer.Ingress {
			if in.IP != "" {
				out = append(out, in.IP)
			} else if in.Hostname != "" {
				out = append(out, in.Hostname)
			}
		}
	}
	return append(out, s.Spec.ExternalIPs...)
}

func externalAddress(n *corev1.Node) string {
	for _, a := range n.Status.Addresses {
		if a.Type == corev1.NodeExternalIP && a.Address != "" {
			return a.Address
		}
	}
	return ""
}

func selectsNode(s *corev1.Service, n *corev1.Node) bool {
	text := s.Annotations["traffic.istio.io/nodeSelector"]
	if text == "" {
		return true
	}
	var selector map[string]string
	return json.Unmarshal([]byte(text), &selector) == nil && labels.SelectorFromSet(selector).Matches(labels.Set(n.Labels))
}

func protocol(p corev1.ServicePort) string {
	if p.Protocol == corev1.ProtocolUDP {
		return "UDP"
	}
	name := p.Name
	if p.AppProtocol != nil {
		name = *p.AppProtocol
	}
	if known := map[string]string{"kubernetes.io/h2c": "HTTP2", "kubernetes.io/ws": "HTTP", "kubernetes.io/wss": "HTTPS"}[name]; known != "" && p.AppProtocol != nil {
		return known
	}
	if strings.HasPrefix(strings.ToLower(name), "grpc-web") {
		return "GRPC-Web"
	}
	out := string(registry.ParseProtocol(strings.Split(name, "-")[0]))
	if out == "UnsupportedProtocol" && slices.Contains([]int32{25, 53, 3306, 27017}, p.Port) {
		return "TCP"
	}
	return out
}

func isAlias(s *corev1.Service) bool {
	return s.Spec.Type == corev1.ServiceTypeExternalName && s.Spec.ExternalName != ""
}

func resolution(s *corev1.Service) string {
	switch {
	case s.Spec.ClusterIP == "None":
		return "Passthrough"
	case isAlias(s):
		return "Alias"
	default:
		return "ClientSide"
	}
}

// service returns a service as recordings have them.
func (w *world) service(s *corev1.Service) record {
	ports := []any{}
	nodePorts := map[string]int32{}
	for _, p := range s.Spec.Ports {
		ports = append(ports, map[string]any{"name": p.Name, "port": p.Port, "protocol": protocol(p)})
		nodePorts[strconv.Itoa(int(p.Port))] = p.NodePort
	}
	out := map[string]any{
		"hostname": w.hostname(s.Namespace, s.Name), "namespace": s.Namespace, "name": s.Name, "registry": "Kubernetes",
		"defaultAddress": vips(s)[0], "clusterVIPs": map[string]any{w.cluster: vips(s)}, "resolution": resolution(s),
		"meshExternal": isAlias(s), "type": s.Spec.Type, "ports": ports,
		"exportTo": exportTo(s), "labels": s.Labels, "labelSelectors": s.Spec.Selector, "serviceAccounts": w.accounts(s),
		"creationTime":        s.CreationTimestamp.UTC().Format("2006-01-02T15:04:05Z07:00"),
		"trafficDistribution": w.distribution(s), "publishNotReadyAddresses": s.Spec.PublishNotReadyAddresses,
		"nodeLocal": s.Spec.InternalTrafficPolicy != nil && *s.Spec.InternalTrafficPolicy == corev1.ServiceInternalTrafficPolicyLocal,
	}
	if isAlias(s) {
		out["externalName"] = s.Spec.ExternalName
	}
	if e := w.external(s); len(e) > 0 {
		out["clusterExternalAddresses"] = map[string]any{w.cluster: e}
	}
	if isNodePort(s) {
		out["clusterExternalPorts"] = map[string]any{w.cluster: nodePorts}
	}
	return plain(out).(map[string]any)
}
