// SPDX-License-Identifier: Apache-2.0

package serviceentry

import (
	"encoding/binary"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/pilotkit/pilotkit/internal/topo"
	"github.com/pilotkit/pilotkit/registry"
)

// draft is the input of endpoint attributes, before labels and identity are built. Labels of the
// topology override labels of the metadata, which override labels of the spec.
type draft struct {
	registry.EndpointAttributes
	// identity takes the place of ServiceAccount, unless it is zero.
	identity       spiffe
	metadata, spec map[string]string
	topology       topology
}

// topology is labels that say where a workload is; empty values are not set.
type topology [5]label

// topologyOf returns the labels for the region, zone and subzone of a locality,
// the cluster and the network.
func topologyOf(locality string, cluster registry.ClusterID, network string) topology {
	region, zone, subzone := topo.Split(locality)
	return topology{
		{topo.Region, region},
		{topo.Zone, zone},
		{topo.Subzone, subzone},
		{topo.Cluster, string(cluster)},
		{topo.Network, network},
	}
}

func (t *topology) sets(key string) bool {
	for i := range t {
		if t[i].key == key && t[i].value != "" {
			return true
		}
	}
	return false
}

// labels yields each label of the endpoint once.
func (d *draft) labels(yield func(key, value string) bool) {
	for k, v := range d.metadata {
		if !d.topology.sets(k) && !yield(k, v) {
			return
		}
	}
	for k, v := range d.spec {
		if _, hidden := d.metadata[k]; !hidden && !d.topology.sets(k) && !yield(k, v) {
			return
		}
	}
	for _, l := range d.topology {
		if l.value != "" && !yield(l.key, l.value) {
			return
		}
	}
}

// appendLabels appends a text of the labels: that of other labels is another one.
func (d *draft) appendLabels(to []byte) []byte {
	var room [16]label
	labels := room[:0]
	for k, v := range d.labels {
		labels = append(labels, label{k, v})
	}
	slices.SortFunc(labels, func(l, m label) int { return strings.Compare(l.key, m.key) })
	for _, l := range labels {
		to = appendText(appendText(to, l.key), l.value)
	}
	return to
}

// appendRest appends a text of everything but the labels, as appendLabels does. An
// identity and a ServiceAccount that says the same have different texts.
func (d *draft) appendRest(to []byte) []byte {
	for _, s := range [...]string{
		d.identity.trustDomain, d.identity.namespace, d.identity.account, d.ServiceAccount, d.Network, d.Locality,
		string(d.ClusterID), d.TLSMode, d.Namespace, d.HostName, d.SubDomain, d.NodeName,
	} {
		to = appendText(to, s)
	}
	for _, is := range [...]bool{d.SendUnhealthyEndpoints, d.DiscoverableFromSameCluster} {
		to = strconv.AppendBool(to, is)
	}
	return strconv.AppendUint(to, uint64(d.LbWeight), 10)
}

// appendText appends a text such that where it ends can be told.
func appendText(to []byte, s string) []byte {
	return append(binary.AppendUvarint(to, uint64(len(s))), s...)
}

// buildLabels returns the labels. It does not copy labels from a single source.
func (d *draft) buildLabels() registry.Labels {
	switch {
	case d.topology != topology{} || len(d.metadata) > 0 && len(d.spec) > 0:
		n := 0
		for range d.labels {
			n++
		}
		out := make(registry.Labels, n)
		maps.Insert(out, d.labels)
		return out
	case len(d.spec) > 0:
		return d.spec
	default:
		return d.metadata
	}
}

// build returns the attributes with the labels.
func (d *draft) build(labels registry.Labels) registry.EndpointAttributes {
	out := d.EndpointAttributes
	out.Labels = labels
	if d.identity != (spiffe{}) {
		out.ServiceAccount = d.identity.String()
	}
	return out
}
