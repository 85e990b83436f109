// SPDX-License-Identifier: Apache-2.0

package xdsbuild

import (
	"strings"

	"github.com/pilotkit/pilotkit/internal/topo"
	"github.com/pilotkit/pilotkit/registry"
)

// ranker ranks endpoints for a proxy. Nearer endpoints have smaller ranks.
type ranker struct {
	localitySetting
	locality localityKey
	// wanted are the values of the setting's labels, in order.
	wanted []label
}

type label struct{ key, value string }

func newRanker(p *registry.Proxy, setting localitySetting) ranker {
	r := ranker{localitySetting: setting, locality: keyOfLocality(p.Locality)}
	for _, l := range setting.labels {
		key, value, given := strings.Cut(l, "=")
		if !given {
			value = topologyLabel(key, p.Labels, p.Locality, p.Network, p.ClusterID)
		}
		r.wanted = append(r.wanted, label{key, value})
	}
	return r
}

// ranksOfLocality is the number of ranks of byLocality and byRegion.
const ranksOfLocality = 5

// rank returns the rank of an endpoint in a locality. Labels are compared first. The locality
// orders endpoints of equal labels if there are no labels, or if regions have failover regions.
func (r ranker) rank(e *registry.Endpoint, l localityKey) int {
	rank := 0
	switch {
	case r.zoneAware:
		rank = r.byRegion(l)
	case len(r.labels) == 0 || len(r.regions) > 0:
		rank = r.byLocality(l)
	}
	return r.byLabels(e)*ranksOfLocality + rank
}

// byLabels returns the number of labels that differ. All labels after the first difference count as
// different.
func (r ranker) byLabels(e *registry.Endpoint) int {
	a := e.Attributes()
	for i, l := range r.wanted {
		if topologyLabel(l.key, a.Labels, a.Locality, a.Network, a.ClusterID) != l.value {
			return len(r.wanted) - i
		}
	}
	return 0
}

// topologyLabel returns the value of a label. Topology labels that are not among the labels come
// from the locality, the network and the cluster.
func topologyLabel(key string, labels registry.Labels, locality, network string, cluster registry.ClusterID) string {
	if value, ok := labels[key]; ok {
		return value
	}
	switch key {
	case topo.Region:
		return keyOfLocality(locality).region
	case topo.Zone:
		return keyOfLocality(locality).zone
	case topo.Subzone:
		return keyOfLocality(locality).subZone
	case topo.Network:
		return network
	case topo.Cluster:
		return string(cluster)
	default:
		return ""
	}
}

// byLocality returns 0 for the same subzone, 1 for the same zone, 2 for the same region, 3
// elsewhere, and 4 in a region that is not the failover region. Parts are compared as text: an
// empty one equals only an empty one.
func (r ranker) byLocality(l localityKey) int {
	switch own := r.locality; {
	case own.region != l.region:
		return 3 + r.failoverRank(l)
	case own.zone != l.zone:
		return 2
	case own.subZone != l.subZone:
		return 1
	default:
		return 0
	}
}

// byRegion returns 0 for the same region, 1 elsewhere, and 2 in a region that is not the failover
// region.
func (r ranker) byRegion(l localityKey) int {
	if r.locality.region == l.region {
		return 0
	}
	return 1 + r.failoverRank(l)
}

// failoverRank returns 1 if the proxy's region has a failover region and l is not in it.
func (r ranker) failoverRank(l localityKey) int {
	if next, ok := r.regions[r.locality.region]; ok && next != l.region {
		return 1
	}
	return 0
}
