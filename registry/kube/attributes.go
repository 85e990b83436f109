// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"maps"

	"github.com/pilotkit/pilotkit/internal/topo"
	"github.com/pilotkit/pilotkit/registry"
)

// attributesOf returns the attributes that the endpoints of a pod have in common.
func (e *engine) attributesOf(n *podNode) *registry.EndpointAttributes {
	p := &n.pod().Value
	t := p.template
	locality, ok := t.labels[topo.Locality]
	if !ok {
		locality = t.labels[topo.LegacyLocality]
	}
	if locality = topo.FromLabel(locality); locality == "" {
		locality = n.node.locality()
	}
	primary := ""
	if len(p.addresses) > 0 {
		primary = p.addresses[0]
	}
	network := e.networkOf(primary, t.labels)
	hostname := t.hostname
	if t.subdomain != "" && hostname == "" {
		hostname = n.key().name
	}
	tls, labelled := t.labels[labelTLSMode]
	if !labelled {
		tls = "disabled"
	}
	node := n.nodeName()
	return &registry.EndpointAttributes{
		Labels:         e.augment(t.labels, locality, node, network),
		ServiceAccount: canonical(identity(e.mesh.trustDomain, n.key().namespace, t.account)),
		Network:        network, Locality: locality, ClusterID: e.options.ClusterID,
		SendUnhealthyEndpoints: true, TLSMode: tls, Namespace: n.key().namespace,
		HostName: hostname, SubDomain: t.subdomain, NodeName: node,
	}
}

// augment adds topology labels to labels. Unknown values are omitted, and so is an empty network
// label.
func (e *engine) augment(labels registry.Labels, locality, node, network string) registry.Labels {
	region, zone, subzone := topo.Split(locality)
	added := [...]struct{ key, value string }{
		{topo.Region, region},
		{topo.Zone, zone},
		{topo.Subzone, subzone},
		{topo.Node, node},
		{topo.Cluster, string(e.options.ClusterID)},
		{topo.Network, network},
	}
	// Compute the exact size, because a size that is too large may double the memory of the map,
	// and each pod has one.
	size := len(labels)
	for _, l := range added {
		if _, own := labels[l.key]; l.value != "" && !own {
			size++
		}
	}
	out := make(registry.Labels, size)
	maps.Copy(out, labels)
	for _, l := range added {
		if l.value != "" {
			out[l.key] = l.value
		}
	}
	if network == "" {
		delete(out, topo.Network)
	}
	return out
}
