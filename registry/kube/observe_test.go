// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"sort"
	"sync"
	"time"

	"github.com/pilotkit/pilotkit/registry"
)

// The functions of this file convert the results of the library to the form of recordings.

// viewed has the views of endpoints, which are immutable.
var viewed sync.Map

func viewEndpoint(e *registry.Endpoint) record {
	if v, ok := viewed.Load(e); ok {
		return v.(record)
	}
	v := newEndpointView(e)
	viewed.Store(e, v)
	return v
}

func newEndpointView(e *registry.Endpoint) record {
	a := e.Attributes()
	health := e.HealthStatus.String()
	return plain(map[string]any{
		"addresses": e.Addresses, "endpointPort": e.EndpointPort, "servicePortName": e.ServicePortName,
		"legacyClusterPortKey": e.ServicePort, "labels": a.Labels, "serviceAccount": a.ServiceAccount, "network": a.Network,
		"locality": a.Locality, "clusterID": a.ClusterID, "lbWeight": a.LbWeight, "healthStatus": health,
		"sendUnhealthyEndpoints": a.SendUnhealthyEndpoints, "tlsMode": a.TLSMode, "namespace": a.Namespace,
		"workloadName": e.WorkloadName, "hostName": a.HostName, "subDomain": a.SubDomain, "nodeName": a.NodeName,
	}).(map[string]any)
}

func viewService(s *registry.Service) record {
	a := &s.Attributes
	ports := []any{}
	for _, p := range s.Ports {
		ports = append(ports, map[string]any{
			"name": p.Name, "port": p.Number, "protocol": p.Protocol, "passthroughTargetPort": a.PassthroughTargetPorts[p.Number],
		})
	}
	out := map[string]any{
		"hostname": s.Hostname, "namespace": a.Namespace, "objectName": a.ObjectName, "defaultAddress": s.DefaultAddress,
		"name": a.Name, "registry": viewProvider(a.Provider), "resolution": s.Resolution.String(), "meshExternal": s.MeshExternal,
		"ports": ports, "exportTo": a.ExportTo, "labels": a.Labels, "labelSelectors": a.LabelSelectors,
		"serviceAccounts": s.ServiceAccounts, "creationTime": s.CreationTime.UTC().Format(time.RFC3339),
		"trafficDistribution": a.TrafficDistribution, "clusterVIPs": s.ClusterVIPs, "autoAllocatedIPv4": s.AutoAllocatedIPv4,
		"autoAllocatedIPv6": s.AutoAllocatedIPv6, "dnsConnectStrategy": a.DNSConnectStrategy,
		"clusterExternalAddresses": a.ClusterExternalAddresses, "visibility": a.Visibility,
	}
	if k := a.Kubernetes; k != nil {
		out["type"], out["externalName"], out["nodeLocal"] = k.Type, k.ExternalName, k.NodeLocal
		out["publishNotReadyAddresses"], out["clusterExternalPorts"] = k.PublishNotReadyAddresses, k.ExternalPorts
	}
	return plain(out).(map[string]any)
}

func viewProvider(p registry.ProviderID) string { return string(p) }

func viewGateway(g registry.NetworkGateway) record {
	return plain(map[string]any{
		"network": g.Network, "cluster": g.Cluster, "addr": g.Addr, "port": g.Port, "hbonePort": g.HBONEPort,
		"serviceAccount": g.ServiceAccount,
	}).(map[string]any)
}

func viewTarget(i *registry.ServiceInstance) record {
	s := i.Service
	return plain(map[string]any{
		"hostname": s.Hostname, "namespace": s.Attributes.Namespace, "objectName": s.Attributes.ObjectName,
		"defaultAddress": s.DefaultAddress, "portName": i.ServicePort.Name, "port": i.ServicePort.Number,
		"protocol": i.ServicePort.Protocol, "targetPort": i.Endpoint.EndpointPort,
	}).(map[string]any)
}

// set is a set of texts.
type set map[string]bool

func (s set) sorted() []string {
	out := make([]string, 0, len(s))
	for k := range s {
		out = append(out, k)
	}
	sort.Strings(out)
	return out
}

func textsOf(records []record) set {
	out := set{}
	for _, r := range records {
		out[r.text()] = true
	}
	return out
}

// indexKey is a shard of a service in the endpoint index.
type indexKey struct{ hostname, namespace, shard string }

func (k indexKey) String() string { return k.namespace + "/" + k.hostname + " in " + k.shard }

// indexState is the content of the endpoint index.
type indexState map[indexKey][]record

func (sys *system) viewIndex() indexState {
	out := indexState{}
	for e := range sys.recorder.index.All() {
		for shard, endpoints := range e.Shards() {
			k := indexKey{string(e.Hostname()), e.Namespace(), shard.String()}
			for _, ep := range endpoints {
				out[k] = append(out[k], viewEndpoint(ep))
			}
		}
	}
	return out
}

// recordedIndex reads the index of a recorded step. The label of an unknown network
// is no label.
func recordedIndex(step record) indexState {
	out := indexState{}
	for _, e := range step.list("endpointIndex") {
		for _, s := range e.list("shards") {
			k := indexKey{e.str("hostname"), e.str("namespace"), s.str("shard")}
			out[k] = append(out[k], s.list("endpoints")...)
		}
	}
	return out
}

func (sys *system) viewProxy(p proxySpec) *registry.Proxy {
	out := &registry.Proxy{
		Namespace: p.Namespace, ClusterID: registry.ClusterID(p.Cluster), IPAddresses: p.IPs, Labels: p.Labels, NodeName: p.Node,
	}
	if p.IP != "" {
		out.IPAddresses = append([]string{p.IP}, p.IPs...)
	}
	if p.Pod != "" {
		out.ID = p.Pod + "." + p.Namespace
	}
	for _, port := range p.PodPorts {
		out.WorkloadPorts = append(out.WorkloadPorts, registry.WorkloadPort{
			Name: port.Name, Number: port.ContainerPort, Protocol: port.Protocol,
		})
	}
	return out
}
