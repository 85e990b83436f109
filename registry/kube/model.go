// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/pilotkit/pilotkit/registry"
)

// hostnameOf returns the host name of a service.
func (e *engine) hostnameOf(k objectKey) registry.Hostname {
	return registry.Hostname(k.name + "." + k.namespace + ".svc." + e.options.DomainSuffix)
}

// modelOf returns a service in the registry's model, computed from the object, its namespace, and
// the current nodes and mesh.
func (e *engine) modelOf(s *service) *registry.Service {
	cluster := e.options.ClusterID
	addresses := s.addresses
	if len(addresses) == 0 {
		addresses = []string{registry.UnspecifiedAddress}
	}
	out := &registry.Service{
		Hostname: e.hostnameOf(s.objectKey), DefaultAddress: addresses[0],
		ClusterVIPs: map[registry.ClusterID][]string{cluster: addresses},
		Resolution:  s.resolution(), MeshExternal: s.alias(),
		ServiceAccounts: s.accounts(e.mesh.trustDomain), CreationTime: s.created, ResourceVersion: s.version,
		Attributes: registry.ServiceAttributes{
			Provider: registry.Kubernetes, Name: s.name, Namespace: s.namespace, Labels: s.labels,
			LabelSelectors: s.selector, ExportTo: s.exportTo(),
			TrafficDistribution: s.distribution(e.space(s.namespace).object),
			Kubernetes: &registry.KubernetesAttributes{
				Type: string(s.kind), ExternalName: s.externalName, NodeLocal: s.nodeLocal,
				PublishNotReadyAddresses: s.publishNotReady,
			},
		},
	}
	for _, p := range s.ports {
		out.Ports = append(out.Ports, &registry.Port{Name: p.name, Number: p.number, Protocol: p.protocol})
	}
	external := s.external
	if s.nodePorts() {
		out.Attributes.Kubernetes.ExternalPorts = map[registry.ClusterID]map[uint32]uint32{cluster: s.portMap()}
		if len(external) == 0 {
			external = e.nodeAddresses(s)
		}
	}
	if len(external) > 0 {
		out.Attributes.ClusterExternalAddresses = map[registry.ClusterID][]string{cluster: external}
	}
	return out
}

// alias reports whether the service is another name of a host.
func (s *service) alias() bool { return s.externalName != "" }

func (s *service) resolution() registry.Resolution {
	switch {
	case s.headless: // even if it is an alias, as in Istio 1.30
		return registry.Passthrough
	case s.alias():
		return registry.Alias
	default:
		return registry.ClientSideLB
	}
}

// accounts returns the identities in the annotations, given verbatim or as the name of a service
// account.
func (s *service) accounts(trustDomain string) []string {
	var out []string
	if v := s.annotations[annotationIdentities]; v != "" {
		out = append(out, strings.Split(v, ",")...)
	}
	if v := s.annotations[annotationAccounts]; v != "" {
		for account := range strings.SplitSeq(v, ",") {
			out = append(out, identity(trustDomain, s.namespace, account))
		}
	}
	return out
}

// identity returns the SPIFFE ID of a service account.
func identity(trustDomain, namespace, account string) string {
	return "spiffe://" + trustDomain + "/ns/" + namespace + "/sa/" + account
}

// exportTo returns the values of the annotation, sorted, without duplicates and without validation.
func (s *service) exportTo() []registry.Visibility {
	var out []registry.Visibility
	for v := range strings.SplitSeq(s.annotations[annotationExportTo], ",") {
		if v = strings.TrimSpace(v); v != "" {
			out = append(out, registry.Visibility(v))
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// hidden reports whether the service is exported to no namespace.
func (s *service) hidden() bool {
	return slices.Contains(s.exportTo(), registry.VisibilityNone)
}

// distribution returns the preference for near endpoints: that of the spec, or else of the
// service's annotation, or else of the namespace's. An invalid annotation of the service means no
// preference.
func (s *service) distribution(n *namespace) registry.TrafficDistribution {
	if d, ok := distributionOf(s.trafficDistribution); ok {
		return d
	}
	if v := s.annotations[annotationTraffic]; v != "" {
		d, _ := distributionOf(v)
		return d
	}
	if n != nil {
		d, _ := distributionOf(n.trafficDistribution)
		return d
	}
	return registry.TrafficDistributionAny
}

func distributionOf(v string) (registry.TrafficDistribution, bool) {
	switch strings.ToLower(v) {
	case "preferclose", "prefersamezone":
		return registry.TrafficDistributionPreferSameZone, true
	case "prefersamenode":
		return registry.TrafficDistributionPreferSameNode, true
	default:
		return registry.TrafficDistributionAny, false
	}
}

// sessions reports whether the service has sticky sessions. Its endpoints are drained instead of
// dropped.
func (s *service) sessions() bool {
	return s.labels[labelSessionCookie] != "" || s.labels[labelSessionHeader] != ""
}

// dualStack reports whether the service has several addresses.
func (s *service) dualStack() bool { return len(s.addresses) > 1 }

// nodePorts reports whether clients reach the service through ports of nodes. As in Istio, that
// depends on the annotation that selects the nodes.
func (s *service) nodePorts() bool {
	_, annotated := s.annotations[annotationNodes]
	return s.kind == corev1.ServiceTypeNodePort && annotated
}

func (s *service) portMap() map[uint32]uint32 {
	out := make(map[uint32]uint32, len(s.ports))
	for _, p := range s.ports {
		out[p.number] = p.nodePort
	}
	return out
}

// selectsNode reports whether the annotation selects a node. An empty annotation selects all nodes,
// an annotation that is not JSON none.
func (s *service) selectsNode(n *node) bool {
	text := s.annotations[annotationNodes]
	if text == "" {
		return true
	}
	var selector map[string]string
	if json.Unmarshal([]byte(text), &selector) != nil {
		return false
	}
	return registry.Labels(selector).SubsetOf(n.labels)
}

// nodeAddresses returns the external addresses of the nodes that a service selects, sorted.
func (e *engine) nodeAddresses(s *service) []string {
	var out []string
	for _, n := range e.nodes {
		if n.object != nil && n.object.address != "" && s.selectsNode(n.object) {
			out = append(out, n.object.address)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// sameTargets reports whether ports have the same target ports, which are not part of the model.
func sameTargets(a, b *service) bool {
	return slices.EqualFunc(a.ports, b.ports, func(p, q servicePort) bool {
		return p.number == q.number && p.target == q.target && p.targetName == q.targetName && p.transport == q.transport
	})
}

// sameService reports whether two states of a service have the same results.
func sameService(a, b *service) bool {
	return a.objectKey == b.objectKey && a.created.Equal(b.created) && a.kind == b.kind && a.headless == b.headless &&
		a.externalName == b.externalName && a.nodeLocal == b.nodeLocal && a.publishNotReady == b.publishNotReady &&
		a.trafficDistribution == b.trafficDistribution && a.labels.Equal(b.labels) && a.selector.Equal(b.selector) &&
		maps.Equal(a.annotations, b.annotations) && slices.Equal(a.ports, b.ports) &&
		slices.Equal(a.addresses, b.addresses) && slices.Equal(a.external, b.external)
}
