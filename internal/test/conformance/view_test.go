// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/pilotkit/pilotkit/registry"
)

// The views of the library's values in the form of the files.

func viewEndpoint(e *registry.Endpoint) endpoint {
	a := e.Attributes()
	return endpoint{
		Addresses: e.Addresses, EndpointPort: e.EndpointPort, ServicePortName: e.ServicePortName,
		LegacyClusterPortKey: e.ServicePort, Labels: a.Labels, ServiceAccount: a.ServiceAccount,
		Network: a.Network, Locality: a.Locality, ClusterID: string(a.ClusterID), LbWeight: a.LbWeight,
		HealthStatus: e.HealthStatus.String(), SendUnhealthyEndpoints: a.SendUnhealthyEndpoints,
		TLSMode: a.TLSMode, Namespace: a.Namespace, WorkloadName: e.WorkloadName,
		HostName: a.HostName, SubDomain: a.SubDomain, NodeName: a.NodeName,
	}
}

func viewEndpoints(endpoints []*registry.Endpoint) []endpoint {
	out := make([]endpoint, len(endpoints))
	for i, e := range endpoints {
		out[i] = viewEndpoint(e)
	}
	return out
}

func viewService(s *registry.Service, started time.Time) service {
	a := s.Attributes
	out := service{
		Hostname: string(s.Hostname), Namespace: a.Namespace, ObjectName: a.ObjectName,
		DefaultAddress: s.DefaultAddress, Name: a.Name, Registry: viewProvider(a.Provider),
		AutoAllocatedIPv4: s.AutoAllocatedIPv4, AutoAllocatedIPv6: s.AutoAllocatedIPv6,
		Resolution: s.Resolution.String(), MeshExternal: s.MeshExternal,
		Visibility: string(a.Visibility), Labels: a.Labels, LabelSelectors: a.LabelSelectors,
		ServiceAccounts: s.ServiceAccounts, CreationTime: viewTime(s.CreationTime, started),
		TrafficDistribution: string(a.TrafficDistribution), DNSConnectStrategy: a.DNSConnectStrategy,
	}
	for _, p := range s.Ports {
		out.Ports = append(out.Ports, port{
			Name: p.Name, Port: p.Number, Protocol: string(p.Protocol), PassthroughTargetPort: a.PassthroughTargetPorts[p.Number],
		})
	}
	for _, v := range a.ExportTo {
		out.ExportTo = append(out.ExportTo, string(v))
	}
	for cluster, addresses := range s.ClusterVIPs {
		if out.ClusterVIPs == nil {
			out.ClusterVIPs = map[string][]string{}
		}
		out.ClusterVIPs[string(cluster)] = addresses
	}
	return out
}

// viewProvider: a plain name is written unchanged.
func viewProvider(p registry.ProviderID) string { return string(p) }

// viewTime writes a time as the files do. What lies in the time of the replay is
// the store's clock.
func viewTime(t, started time.Time) string {
	if !t.Before(started.Truncate(time.Second)) && !t.After(time.Now()) {
		return timeNow
	}
	return formatTime(t)
}

func viewWorkloadCall(handler string, doc int, w *registry.WorkloadInstance, event registry.Event) workloadHandlerCall {
	return workloadHandlerCall{
		Doc: doc, Handler: handler, Event: event.String(), Namespace: w.Namespace, Name: w.Name,
		Kind: w.Kind.String(), PortMap: w.PortMap, DNSServiceEntryOnly: w.DNSServiceEntryOnly,
		Endpoint: viewEndpoint(w.Endpoint),
	}
}

func viewTargets(instances []*registry.ServiceInstance) []target {
	var out []target
	for _, i := range instances {
		out = append(out, target{
			Hostname: string(i.Service.Hostname), Namespace: i.Service.Attributes.Namespace,
			ObjectName: i.Service.Attributes.ObjectName, DefaultAddress: i.Service.DefaultAddress,
			PortName: i.ServicePort.Name, Port: i.ServicePort.Number, Protocol: string(i.ServicePort.Protocol),
			TargetPort: i.Endpoint.EndpointPort,
		})
	}
	slices.SortFunc(out, func(a, b target) int {
		return cmp.Or(strings.Compare(a.Hostname, b.Hostname), strings.Compare(a.ObjectName, b.ObjectName), cmp.Compare(a.Port, b.Port))
	})
	return out
}

func viewGateways(gateways []registry.NetworkGateway) []gateway {
	var out []gateway
	for _, g := range gateways {
		out = append(out, gateway{
			Network: g.Network, Cluster: string(g.Cluster), Addr: g.Addr, Port: g.Port,
			HBONEPort: g.HBONEPort, ServiceAccount: g.ServiceAccount,
		})
	}
	return out
}

// workloadInstance makes the instance that a step describes.
func (w workload) workloadInstance() *registry.WorkloadInstance {
	kind := registry.Pod
	if w.Kind == registry.WorkloadEntry.String() {
		kind = registry.WorkloadEntry
	}
	return &registry.WorkloadInstance{
		Cluster: registry.ClusterID(w.Cluster), Kind: kind, Namespace: w.Namespace, Name: w.Name,
		PortMap: w.PortMap, DNSServiceEntryOnly: w.DNSServiceEntryOnly,
		Endpoint: &registry.Endpoint{
			Addresses: w.Addresses, WorkloadName: w.WorkloadName, HealthStatus: w.health(),
			Shared: &registry.EndpointAttributes{
				Labels: w.Labels, ServiceAccount: w.ServiceAccount, Network: w.Network, Locality: w.Locality,
				ClusterID: registry.ClusterID(w.Cluster), LbWeight: w.Weight,
				SendUnhealthyEndpoints: w.SendUnhealthyEndpoints, TLSMode: w.TLSMode,
				Namespace: w.EndpointNamespace, HostName: w.HostName, SubDomain: w.SubDomain, NodeName: w.NodeName,
			},
		},
	}
}

func (w workload) health() registry.HealthStatus {
	for _, h := range []registry.HealthStatus{registry.Healthy, registry.UnHealthy, registry.Draining, registry.Terminating} {
		if h.String() == w.Health {
			return h
		}
	}
	return registry.HealthUnset
}

func (w workload) event() registry.Event {
	switch w.Event {
	case eventUpdate:
		return registry.EventUpdate
	case eventDelete:
		return registry.EventDelete
	default:
		return registry.EventAdd
	}
}

// registryProxy makes the proxy. Where addresses come from the status of entries,
// every proxy that answers DNS queries knows them (Istio 1.30).
func (p proxy) registryProxy(o options) *registry.Proxy {
	return &registry.Proxy{
		Namespace: p.Namespace, ClusterID: registry.ClusterID(p.Cluster), IPAddresses: p.addresses(),
		DNSCapture:      p.DNSCapture,
		DNSAutoAllocate: p.DNSAutoAllocate || enabled(o.Features.IPAutoallocate, true),
	}
}

// registryService makes the service of a static registry. Its objects have no
// creation time and balance over the endpoints.
func (s staticService) registryService(provider string) *registry.Service {
	out := &registry.Service{
		Hostname: registry.Hostname(s.Hostname), DefaultAddress: s.DefaultAddress, ServiceAccounts: s.ServiceAccounts,
		Attributes: registry.ServiceAttributes{
			Provider: registry.ProviderID(provider), Name: s.Hostname, Namespace: s.Namespace, Labels: s.Labels,
		},
	}
	for _, p := range s.Ports {
		out.Ports = append(out.Ports, &registry.Port{Name: p.Name, Number: p.Port, Protocol: registry.ParseProtocol(p.Protocol)})
	}
	for cluster, addresses := range s.ClusterVIPs {
		if out.ClusterVIPs == nil {
			out.ClusterVIPs = map[registry.ClusterID][]string{}
		}
		out.ClusterVIPs[registry.ClusterID(cluster)] = addresses
	}
	return out
}
