// SPDX-License-Identifier: Apache-2.0

package serviceentry

import (
	"hash/maphash"
	"maps"
	"math/bits"

	"github.com/pilotkit/pilotkit/registry"
)

// draft is endpoint attributes of which the labels and the identity have not been
// put together. The labels are those of the metadata, then those of the spec, and
// over both those of the topology.
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
	region, zone, subzone := splitLocality(locality)
	return topology{
		{labelRegion, region},
		{labelZone, zone},
		{labelSubzone, subzone},
		{labelCluster, string(cluster)},
		{labelNetwork, network},
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

// hashLabels returns the sum of the hashes of the labels: their order does not
// matter.
func (d *draft) hashLabels(seed maphash.Seed) uint64 {
	var sum uint64
	for k, v := range d.labels {
		sum += label{k, v}.hash(seed)
	}
	return sum
}

// matchesLabels reports whether buildLabels would return labels equal to l.
func (d *draft) matchesLabels(l registry.Labels) bool {
	n := 0
	for k, v := range d.labels {
		if got, ok := l[k]; !ok || got != v {
			return false
		}
		n++
	}
	return n == len(l)
}

// buildLabels returns the labels. Those that come from one place are not copied.
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

// matchesWithoutLabels reports whether build would return attributes equal to a,
// but for the labels.
func (d *draft) matchesWithoutLabels(a *registry.EndpointAttributes) bool {
	b, c := d.EndpointAttributes, *a
	if d.identity != (spiffe{}) {
		if !d.identity.is(a.ServiceAccount) {
			return false
		}
		b.ServiceAccount = a.ServiceAccount
	}
	b.Labels, c.Labels = nil, nil
	return b.Equal(&c)
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

func (l label) hash(seed maphash.Seed) uint64 {
	value := maphash.String(seed, l.value)
	// Without the rotation, exchanging key and value would not matter; without
	// something that is not a sum, exchanging the values of two keys.
	return (maphash.String(seed, l.key) ^ bits.RotateLeft64(value, 1)) * mix
}

// mix is an odd number without a pattern: the golden ratio.
const mix = 0x9e3779b97f4a7c15
