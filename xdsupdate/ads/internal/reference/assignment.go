// SPDX-License-Identifier: Apache-2.0

package reference

import (
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	"google.golang.org/protobuf/encoding/protowire"
)

// IsEDS reports whether an encoded cluster gets its endpoints from a load assignment.
func IsEDS(cluster []byte) bool {
	const discoveryType = 2 // Cluster.type
	is := false
	EachField(cluster, func(number protowire.Number, field, _ []byte) {
		if number == discoveryType {
			_, kind, tag := protowire.ConsumeTag(field)
			of, _ := protowire.ConsumeVarint(field[tag:])
			is = kind == protowire.VarintType && of == uint64(clusterv3.Cluster_EDS)
		}
	})
	return is
}

// AssignmentOf returns the name of the load assignment that clients subscribe to for an encoded
// cluster with a name, or "" if they need none.
func AssignmentOf(name string, cluster []byte) (assignment string) {
	const edsField, serviceNameField = 3, 2
	EachField(cluster, func(number protowire.Number, _, eds []byte) {
		if number != edsField {
			return
		}
		assignment = name
		EachField(eds, func(number protowire.Number, _, text []byte) {
			if number == serviceNameField && len(text) > 0 {
				assignment = string(text)
			}
		})
	})
	return assignment
}
