// SPDX-License-Identifier: Apache-2.0

package debug

import (
	"fmt"
	"slices"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/serviceentry/explain"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// servicePage is the content of the page of a host name in a namespace.
type servicePage struct {
	Hostname  registry.Hostname `json:"hostname"`
	Namespace string            `json:"namespace"`
	// Services are the definitions of the host name in the namespace, one for each address.
	// Elsewhere are the definitions in other namespaces.
	Services  []serviceRow `json:"services"`
	Elsewhere []serviceRow `json:"elsewhere,omitempty"`
	// Notes describe problems of the service.
	Notes []string `json:"notes,omitempty"`
	// SeenFrom is a namespace. Seen explains whether proxies in it see the service.
	SeenFrom string            `json:"seen_from,omitempty"`
	Seen     string            `json:"seen,omitempty"`
	List     list[endpointRow] `json:"endpoints"`
	// Explained is set if Entries explain the origin of the endpoints, and why others are missing.
	Explained bool           `json:"explained"`
	Entries   []explainedRow `json:"entries,omitempty"`
	// Pod explains the pod that the request names, nil if it names none.
	Pod *podPart `json:"pod,omitempty"`
	// CanExplain reports whether a registry can explain the origin of endpoints, CanExplainPods
	// whether one can explain pods.
	CanExplain     bool `json:"-"`
	CanExplainPods bool `json:"-"`
}

// Ports returns the ports of the first definition.
func (p *servicePage) Ports() []portRow { return p.Services[0].Ports }

type endpointRow struct {
	Shard       string                `json:"shard,omitempty"`
	Addresses   []string              `json:"addresses"`
	Port        uint32                `json:"port"`
	ServicePort string                `json:"service_port,omitempty"`
	Health      registry.HealthStatus `json:"-"`
	HealthText  string                `json:"health"`
	Workload    string                `json:"workload,omitempty"`
	Cluster     registry.ClusterID    `json:"cluster,omitempty"`
	Network     string                `json:"network,omitempty"`
	Locality    string                `json:"locality,omitempty"`
	Weight      uint32                `json:"weight,omitempty"`
	TLSMode     string                `json:"tls_mode,omitempty"`
	Account     string                `json:"service_account,omitempty"`
	// SameClusterOnly is set if only proxies of the same cluster receive the endpoint.
	SameClusterOnly bool            `json:"same_cluster_only,omitempty"`
	Labels          registry.Labels `json:"labels,omitempty"`
}

// explainedRow is the contribution of one ServiceEntry to a host.
type explainedRow struct {
	Entry      object          `json:"entry"`
	Resolution string          `json:"resolution"`
	Selector   string          `json:"selector,omitempty"`
	Endpoints  []explainedPart `json:"endpoints"`
	// More is the number of endpoints that are not in Endpoints.
	More int `json:"more,omitempty"`
}

// explainedPart is the origin of an endpoint, or the reason why it is not sent.
type explainedPart struct {
	Address string `json:"address"`
	Port    uint32 `json:"port"`
	Source  string `json:"source"`
	Dropped string `json:"dropped,omitempty"`
}

func (h *handler) service(q *query) (any, error) {
	out := &servicePage{Hostname: registry.Hostname(q.values.Get("host")), Namespace: q.values.Get("namespace"), SeenFrom: q.text("seen_from")}
	var here []*registry.Service
	for _, s := range h.servicesNamed(out.Hostname) {
		if s.Attributes.Namespace == out.Namespace {
			here = append(here, s)
			out.Services = append(out.Services, h.serviceRow(s))
		} else if len(out.Elsewhere) < maxLimit {
			out.Elsewhere = append(out.Elsewhere, h.serviceRow(s))
		}
	}
	if len(here) == 0 {
		return nil, notFound("no registry has a service %s in the namespace %q", out.Hostname, out.Namespace)
	}
	if out.SeenFrom != "" {
		out.Seen = seen(here[0], out.SeenFrom)
	}
	out.Notes = h.notesOf(here[0])
	var err error
	if out.List, err = h.endpoints(q, here); err != nil {
		return nil, err
	}
	h.explainPod(q, out)
	registries := h.serviceEntries()
	out.CanExplain = len(registries) > 0
	if out.Explained = out.CanExplain && q.is("explain"); out.Explained {
		for _, c := range registries {
			for _, e := range explain.Host(c, out.Namespace, out.Hostname).Entries {
				out.Entries = append(out.Entries, explainedRowOf(out.Namespace, e))
			}
		}
	}
	return out, nil
}

// seen explains whether proxies of a namespace see a service.
func seen(s *registry.Service, namespace string) string {
	if s.VisibleIn(namespace) {
		return fmt.Sprintf("proxies in the namespace %q may see it, unless a Sidecar there leaves it out", namespace)
	}
	return fmt.Sprintf("proxies in the namespace %q do not see it: %s", namespace, exported(s))
}

// exported describes where a service is visible.
func exported(s *registry.Service) string {
	text := fmt.Sprintf("it is exported to %v", s.Attributes.ExportTo)
	if len(s.Attributes.ExportTo) == 0 {
		text = "it has no exportTo"
	}
	if v := s.Attributes.Visibility; v != "" && v != registry.VisibilityPublic {
		text += fmt.Sprintf(", and the mesh makes it visible in %q at most", string(v))
	}
	return text
}

// notesOf describes the problems of a service.
func (h *handler) notesOf(s *registry.Service) (out []string) {
	if !h.isWithout(s) {
		return nil
	}
	if provider := s.Attributes.Provider; provider != "" && !h.Server.EndpointIndex().HasReported(provider) {
		return []string{fmt.Sprintf(
			"It has no endpoints: no registry of the provider %s has ever reported any to this server. Was it given the server as its updater?", provider)}
	}
	return []string{"It has no endpoints, so that calls of it fail. Explain the endpoints to see which workloads do not count, and why."}
}

// endpoints returns the endpoints of the services of one name and namespace, from the server, or
// from the registry if there is no server.
func (h *handler) endpoints(q *query, services []*registry.Service) (list[endpointRow], error) {
	type part struct {
		shard xdsupdate.ShardKey
		*registry.Endpoint
	}
	var all []part
	if h.Server != nil {
		s := services[0]
		for shard, endpoints := range h.Server.EndpointIndex().Service(s.Hostname, s.Attributes.Namespace).Shards() {
			for _, e := range endpoints {
				all = append(all, part{shard, e})
			}
		}
	} else {
		for _, s := range services {
			for _, i := range h.Services.InstancesByPort(s, 0) {
				all = append(all, part{Endpoint: i.Endpoint})
			}
		}
	}
	return listOf(q, all, func(p part) bool {
		a := p.Attributes()
		return contains(q.text("q"), append(slices.Clone(p.Addresses), p.WorkloadName, string(a.ClusterID), a.Locality)...)
	}, func(p part) endpointRow { return endpointRowOf(p.shard, p.Endpoint) })
}

func endpointRowOf(shard xdsupdate.ShardKey, e *registry.Endpoint) endpointRow {
	a := e.Attributes()
	row := endpointRow{
		Addresses: e.Addresses, Port: e.EndpointPort, ServicePort: e.ServicePortName, Health: e.HealthStatus, HealthText: e.HealthStatus.String(),
		Workload: e.WorkloadName, Cluster: a.ClusterID, Network: a.Network, Locality: a.Locality, Weight: a.LbWeight, TLSMode: a.TLSMode,
		Account: a.ServiceAccount, SameClusterOnly: a.DiscoverableFromSameCluster, Labels: a.Labels,
	}
	if shard != (xdsupdate.ShardKey{}) {
		row.Shard = shard.String()
	}
	return row
}

func explainedRowOf(namespace string, e explain.EntryExplanation) explainedRow {
	row := explainedRow{
		Entry: object{Kind: "ServiceEntry", Namespace: namespace, Name: e.Name}, Resolution: e.Resolution.String(),
		Endpoints: []explainedPart{}, More: max(0, len(e.Endpoints)-maxLimit),
	}
	if e.Selects {
		row.Selector = e.Selector.String()
	}
	// Endpoints that are not sent come first, because users usually look for them.
	parts := slices.Clone(e.Endpoints)
	slices.SortStableFunc(parts, func(a, b explain.EndpointExplanation) int {
		switch {
		case (a.Dropped == "") == (b.Dropped == ""):
			return 0
		case a.Dropped != "":
			return -1
		default:
			return 1
		}
	})
	for _, p := range parts[:min(len(parts), maxLimit)] {
		row.Endpoints = append(row.Endpoints, explainedPart{p.Endpoint.Address(), p.Endpoint.EndpointPort, p.Source, p.Dropped})
	}
	return row
}
