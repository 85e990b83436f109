// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"context"
	"encoding/json"
	"strings"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// ProxyOf returns the proxy that an xDS node describes, in the format of Istio's proxies: the ID is
// "type~ip~name.namespace~domain", and the metadata has NAMESPACE, CLUSTER_ID, NETWORK, LABELS,
// NODE_NAME, INSTANCE_IPS (separated by commas), POD_PORTS (a list of name, containerPort and
// protocol, as JSON in a string) and DNS_CAPTURE ("true"). With DNS_CAPTURE the proxy resolves
// automatically allocated addresses, unless DNS_AUTO_ALLOCATE is set to another value than "true".
// Metadata wins over the ID. A node without any of this gives a proxy with only its ID and
// locality.
func ProxyOf(node *core.Node) *registry.Proxy {
	p := &registry.Proxy{ID: node.GetId(), Locality: localityOf(node.GetLocality())}
	if parts := strings.Split(node.GetId(), "~"); len(parts) == 4 {
		if parts[1] != "" {
			p.IPAddresses = []string{parts[1]}
		}
		if _, namespace, ok := strings.Cut(parts[2], "."); ok {
			p.Namespace = namespace
		}
	}
	text := func(key string) string { return node.GetMetadata().GetFields()[key].GetStringValue() }
	if ns := text("NAMESPACE"); ns != "" {
		p.Namespace = ns
	}
	if ips := text("INSTANCE_IPS"); ips != "" {
		p.IPAddresses = strings.Split(ips, ",")
	}
	p.ClusterID = registry.ClusterID(text("CLUSTER_ID"))
	p.Network = text("NETWORK")
	p.NodeName = text("NODE_NAME")
	p.DNSCapture = isTrue(text("DNS_CAPTURE"))
	p.DNSAutoAllocate = p.DNSCapture && (text("DNS_AUTO_ALLOCATE") == "" || isTrue(text("DNS_AUTO_ALLOCATE")))
	p.WorkloadPorts = parsePodPorts(text("POD_PORTS"))
	if labels := node.GetMetadata().GetFields()["LABELS"].GetStructValue().GetFields(); len(labels) > 0 {
		p.Labels = make(registry.Labels, len(labels))
		for k, v := range labels {
			p.Labels[k] = v.GetStringValue()
		}
	}
	return p
}

// isTrue reads a flag as Istio's agents write it.
func isTrue(text string) bool { return text == "true" || text == "1" }

// parsePodPorts returns the ports of a workload, or none if the text is invalid.
func parsePodPorts(text string) []registry.WorkloadPort {
	var ports []struct {
		Name          string `json:"name"`
		ContainerPort uint32 `json:"containerPort"`
		Protocol      string `json:"protocol"`
	}
	if json.Unmarshal([]byte(text), &ports) != nil {
		return nil
	}
	var out []registry.WorkloadPort
	for _, p := range ports {
		out = append(out, registry.WorkloadPort{Name: p.Name, Number: p.ContainerPort, Protocol: p.Protocol})
	}
	return out
}

func localityOf(l *core.Locality) string {
	return strings.TrimRight(l.GetRegion()+"/"+l.GetZone()+"/"+l.GetSubZone(), "/")
}

// knownProxy returns the proxy that a node describes. If the registries know the workload, their
// labels replace the node's (Istio 1.30).
func (s *Server) knownProxy(_ context.Context, node *core.Node) (*registry.Proxy, error) {
	p := ProxyOf(node)
	if d := s.services.discovery; d != nil {
		if labels := d.GetProxyWorkloadLabels(p); labels != nil {
			p.Labels = labels
		}
	}
	return p, nil
}

// PlainView returns the view of a proxy without Policy.
func PlainView(proxy *registry.Proxy, client envoy.Client) View {
	return View{Namespace: proxy.Namespace, Cluster: proxy.ClusterID, Addresses: addressesOf(proxy), Client: client}
}

// ClientOf returns the kind of client of a node, by its user agent ("gRPC Go", "gRPC C-core", "gRPC
// Java", "gRPC Node Pure JS"), or by the metadata of Istio's bootstrap.
func ClientOf(node *core.Node) envoy.Client {
	if strings.HasPrefix(node.GetUserAgentName(), "gRPC") || node.GetMetadata().GetFields()["GENERATOR"].GetStringValue() == "grpc" {
		return envoy.ForGRPC
	}
	return envoy.ForEnvoy
}
