// SPDX-License-Identifier: Apache-2.0

// Package topo has the labels that say where a workload is, as Kubernetes and
// Istio 1.30 name them, and the form of localities: "region/zone/subzone".
package topo

import "strings"

// Labels of workloads. Locality has the three parts of a locality in one label. LegacyLocality is
// its older name, which counts only without the label Locality, even an empty one.
const (
	Region         = "topology.kubernetes.io/region"
	Zone           = "topology.kubernetes.io/zone"
	Subzone        = "topology.istio.io/subzone"
	Cluster        = "topology.istio.io/cluster"
	Node           = "kubernetes.io/hostname"
	Network        = "topology.istio.io/network"
	Locality       = "topology.istio.io/locality"
	LegacyLocality = "istio-locality"
)

// FromLabel returns the locality that a label names. Labels must not contain
// slashes, hence dots separate the parts; a value that has slashes is a locality.
func FromLabel(value string) string {
	if strings.Contains(value, "/") {
		return value
	}
	return strings.ReplaceAll(value, ".", "/")
}

// Split divides "region/zone/subzone". Missing parts are empty, extra parts are dropped.
func Split(locality string) (region, zone, subzone string) {
	region, rest, _ := strings.Cut(locality, "/")
	zone, rest, _ = strings.Cut(rest, "/")
	subzone, _, _ = strings.Cut(rest, "/")
	return region, zone, subzone
}
