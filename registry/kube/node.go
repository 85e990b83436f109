// SPDX-License-Identifier: Apache-2.0

package kube

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/pilotkit/pilotkit/internal/topo"
	"github.com/pilotkit/pilotkit/registry"
)

// node has the fields of a Node that the registry keeps. It is immutable.
type node struct {
	name string
	// locality is "region/zone/subzone", or "" if all parts are unknown.
	locality string
	labels   registry.Labels
	// address is the first external address.
	address string
}

func convertNode(n *corev1.Node) *node {
	out := &node{name: canonical(n.Name), labels: n.Labels}
	region := firstOf(n.Labels, topo.Region, labelLegacyRegion)
	zone := firstOf(n.Labels, topo.Zone, labelLegacyZone)
	subzone := n.Labels[topo.Subzone]
	if region != "" || zone != "" || subzone != "" {
		out.locality = canonical(region + "/" + zone + "/" + subzone)
	}
	for _, a := range n.Status.Addresses {
		if a.Type == corev1.NodeExternalIP && a.Address != "" {
			out.address = a.Address
			break
		}
	}
	return out
}

func firstOf(labels map[string]string, keys ...string) string {
	for _, k := range keys {
		if v := labels[k]; v != "" {
			return v
		}
	}
	return ""
}

// namespace has the fields of a Namespace that the registry keeps. It is immutable.
type namespace struct {
	name                string
	labels              registry.Labels
	trafficDistribution string
}

func convertNamespace(n *corev1.Namespace) *namespace {
	return &namespace{name: canonical(n.Name), labels: n.Labels, trafficDistribution: n.Annotations[annotationTraffic]}
}
