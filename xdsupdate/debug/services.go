// SPDX-License-Identifier: Apache-2.0

package debug

import (
	"slices"
	"time"

	"github.com/pilotkit/pilotkit/registry"
)

// serviceRow is a service in the list of services.
type serviceRow struct {
	Hostname   registry.Hostname     `json:"hostname"`
	Namespace  string                `json:"namespace"`
	Provider   registry.ProviderID   `json:"provider,omitempty"`
	Object     string                `json:"object,omitempty"` // its name
	Resolution string                `json:"resolution"`
	Addresses  []string              `json:"addresses,omitempty"`
	Ports      []portRow             `json:"ports"`
	ExportTo   []registry.Visibility `json:"export_to,omitempty"`
	External   bool                  `json:"external,omitempty"`
	Created    time.Time             `json:"created,omitzero"`
	// Endpoints is the number of endpoints in the server's index, nil if there is no server.
	Endpoints *int `json:"endpoints,omitempty"`
	// Without is set if the service has no endpoints although its clients get them from the server.
	Without bool `json:"without_endpoints,omitempty"`
}

type portRow struct {
	Name     string            `json:"name,omitempty"`
	Number   uint32            `json:"number"`
	Protocol registry.Protocol `json:"protocol"`
}

func (h *handler) services(q *query) (any, error) {
	all := h.Services.Services()
	return listOf(q, all, func(s *registry.Service) bool {
		return (!q.is("namespace") || s.Attributes.Namespace == q.text("namespace")) &&
			contains(q.text("q"), string(s.Hostname), s.Attributes.ObjectName) &&
			(!q.is("seen_from") || s.VisibleIn(q.text("seen_from"))) &&
			(!q.is("without") || h.isWithout(s))
	}, h.serviceRow)
}

// isWithout reports whether a service has no endpoints although its clients get them from the
// server.
func (h *handler) isWithout(s *registry.Service) bool {
	return h.Server != nil && s.Resolution == registry.ClientSideLB && h.endpointsOf(s) == 0
}

func (h *handler) endpointsOf(s *registry.Service) int {
	return h.Server.EndpointIndex().Service(s.Hostname, s.Attributes.Namespace).Len()
}

func (h *handler) serviceRow(s *registry.Service) serviceRow {
	row := serviceRow{
		Hostname: s.Hostname, Namespace: s.Attributes.Namespace, Provider: s.Attributes.Provider, Object: s.Attributes.ObjectName,
		Resolution: s.Resolution.String(), Addresses: addressesOf(s), ExportTo: s.Attributes.ExportTo, External: s.MeshExternal,
		Created: s.CreationTime, Ports: []portRow{}, Without: h.isWithout(s),
	}
	for _, p := range s.Ports {
		row.Ports = append(row.Ports, portRow{p.Name, p.Number, p.Protocol})
	}
	if h.Server != nil {
		row.Endpoints = new(h.endpointsOf(s))
	}
	return row
}

// addressesOf returns the addresses of a service, including the addresses in each cluster.
func addressesOf(s *registry.Service) (out []string) {
	if s.DefaultAddress != registry.UnspecifiedAddress {
		out = append(out, s.DefaultAddress)
	}
	for _, vips := range s.ClusterVIPs {
		out = append(out, vips...)
	}
	for _, allocated := range []string{s.AutoAllocatedIPv4, s.AutoAllocatedIPv6} {
		if allocated != "" {
			out = append(out, allocated)
		}
	}
	slices.Sort(out)
	return slices.DeleteFunc(slices.Compact(out), func(a string) bool { return a == "" })
}

// servicesNamed returns the services of a host name in all namespaces.
func (h *handler) servicesNamed(host registry.Hostname) []*registry.Service {
	if h.Services == nil {
		return nil
	}
	if snapshots, ok := registry.As[registry.ServiceSnapshotter](h.Services); ok {
		if set := snapshots.ServiceSnapshot(); set != nil {
			return set.Host(host)
		}
	}
	var out []*registry.Service
	for _, s := range h.Services.Services() {
		if s.Hostname == host {
			out = append(out, s)
		}
	}
	return out
}
