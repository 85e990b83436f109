// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	"github.com/pilotkit/pilotkit/internal/excerpt"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/services"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// View decides which resources a proxy is sent. Proxies with the same view share everything. It is
// comparable. Its JSON has the client as a word, and Policy as text, made by fmt.Sprint: a method String
// improves that text.
type View struct {
	// Namespace is the namespace of the proxy: it limits the visible services.
	Namespace string `json:"namespace"`
	// Cluster is the cluster of the proxy: it limits the visible endpoints.
	Cluster registry.ClusterID `json:"cluster,omitempty"`
	// Addresses are the addresses of services that the proxy can use.
	Addresses Addresses `json:"addresses"`
	// Client is the kind of the proxy.
	Client envoy.Client `json:"client"`
	// Policy is the result of Provider.Group for the proxy. Each provider gets views with its own
	// result; other callers get the result of the first one of Options.Providers, and the results
	// of others through SeenBy. Nil without a provider. Built-in resources do not depend on it.
	Policy any `json:"policy"`
	// policies are the results of several providers, as a policy; nil with one provider.
	policies any
}

// String describes the view for logs and errors, as in `namespace "shop", cluster "east", Envoy`. Empty
// fields and the results of providers are omitted. Long texts are cut, because
// proxies choose their namespaces.
func (v View) String() string {
	var out strings.Builder
	fmt.Fprintf(&out, "namespace %q, ", excerpt.Cut(v.Namespace))
	if v.Cluster != "" {
		fmt.Fprintf(&out, "cluster %q, ", excerpt.Cut(string(v.Cluster)))
	}
	out.WriteString(v.Client.String())
	return out.String()
}

// MarshalJSON implements json.Marshaler. Policy is a text, because it may be a value that has no JSON,
// or whose error would fail the whole view.
func (v View) MarshalJSON() ([]byte, error) {
	type fields View // without this method
	policy := ""
	if v.Policy != nil {
		policy = excerpt.Cut(fmt.Sprint(v.Policy))
	}
	return json.Marshal(struct {
		fields
		Client string `json:"client"`
		Policy string `json:"policy,omitempty"`
	}{fields(v), v.Client.String(), policy})
}

// Addresses are the addresses of services that a proxy can use. It is comparable. The zero value
// stands for an unknown proxy.
type Addresses struct {
	// IPv4 and IPv6 mean that the proxy has addresses of this family. If neither is set, the
	// families are unknown, which counts as both.
	IPv4 bool `json:"ipv4"`
	IPv6 bool `json:"ipv6"`
	// Allocated means that the proxy answers the DNS queries of its application with automatically
	// allocated addresses.
	Allocated bool `json:"allocated"`
}

// addressesOf returns the addresses that a proxy can use.
func addressesOf(proxy *registry.Proxy) Addresses {
	a := Addresses{Allocated: proxy.DNSCapture && proxy.DNSAutoAllocate}
	for _, text := range proxy.IPAddresses {
		if parsed, err := netip.ParseAddr(text); err == nil {
			four := parsed.Unmap().Is4()
			a.IPv4, a.IPv6 = a.IPv4 || four, a.IPv6 || !four
		}
	}
	return a
}

// ofServices returns the fields of the view on which the resources of services depend.
func (v View) ofServices() services.View {
	return services.View{Namespace: v.Namespace, Cluster: v.Cluster, Client: v.Client, Addresses: services.Addresses(v.Addresses)}
}

// policy is the result of a provider for a proxy; next is that of another one, or nil. It is
// comparable if of is, and so are views.
type policy struct {
	provider string // its name
	of, next any
}

// group sets the results of the providers for a proxy.
func (v *View) group(providers []Provider, node *core.Node, proxy *registry.Proxy) {
	for i, p := range providers {
		made := p.Group(node, proxy)
		if i == 0 {
			v.Policy = made
		}
		if len(providers) > 1 {
			v.policies = policy{p.Name(), made, v.policies}
		}
	}
}

// SeenBy returns the view as the provider with a name gets it: with the Policy of that provider,
// independent of the order of Options.Providers. Views that a provider was given, and views that a
// program makes itself, are returned as they are.
func (v View) SeenBy(provider string) View {
	if v.policies == nil {
		return v
	}
	v.Policy = nil
	for next := v.policies; next != nil; next = next.(policy).next {
		if p := next.(policy); p.provider == provider {
			v.Policy = p.of
		}
	}
	v.policies = nil
	return v
}

// ProxyOf returns the proxy that an xDS node describes, in the format of Istio's proxies: the ID is
// "type~ip~name.namespace~domain", where the name may contain dots, and the metadata has NAMESPACE,
// CLUSTER_ID, NETWORK, LABELS, NODE_NAME, INSTANCE_IPS (separated by commas), POD_PORTS (a list of
// name, containerPort and protocol, as JSON in a string) and DNS_CAPTURE ("true"). With DNS_CAPTURE
// the proxy resolves automatically allocated addresses, unless DNS_AUTO_ALLOCATE is set to another
// value than "true". Metadata wins over the ID. A node without any of this gives a proxy with only
// its ID and locality.
func ProxyOf(node *core.Node) *registry.Proxy {
	at := node.GetLocality()
	p := &registry.Proxy{ID: node.GetId(), Locality: strings.TrimRight(at.GetRegion()+"/"+at.GetZone()+"/"+at.GetSubZone(), "/")}
	if parts := strings.Split(node.GetId(), "~"); len(parts) == 4 {
		if parts[1] != "" {
			p.IPAddresses = []string{parts[1]}
		}
		if dot := strings.LastIndexByte(parts[2], '.'); dot >= 0 {
			p.Namespace = parts[2][dot+1:]
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
