// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	"google.golang.org/protobuf/proto"

	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// TestAssignments: which clusters get their endpoints by EDS, and under which name.
func TestAssignments(t *testing.T) {
	of := func(kind clusterv3.Cluster_DiscoveryType) *clusterv3.Cluster_Type {
		return &clusterv3.Cluster_Type{Type: kind}
	}
	for what, tt := range map[string]struct {
		cluster *clusterv3.Cluster
		isEDS   bool
		name    string
	}{
		"of its own name": {&clusterv3.Cluster{
			Name: "a", ClusterDiscoveryType: of(clusterv3.Cluster_EDS), EdsClusterConfig: &clusterv3.Cluster_EdsClusterConfig{},
		}, true, "a"},
		"of another name": {&clusterv3.Cluster{
			Name: "a", ClusterDiscoveryType: of(clusterv3.Cluster_EDS), EdsClusterConfig: &clusterv3.Cluster_EdsClusterConfig{ServiceName: "b"},
		}, true, "b"},
		"by DNS":  {&clusterv3.Cluster{Name: "a", ClusterDiscoveryType: of(clusterv3.Cluster_STRICT_DNS)}, false, ""},
		"static":  {&clusterv3.Cluster{Name: "a"}, false, ""},
		"nothing": {&clusterv3.Cluster{}, false, ""},
	} {
		encoded, err := proto.Marshal(tt.cluster)
		if err != nil {
			t.Fatal(err)
		}
		if got := IsEDS(encoded); got != tt.isEDS {
			t.Errorf("%s: IsEDS is %v", what, got)
		}
		if got := AssignmentOf("a", encoded); got != tt.name {
			t.Errorf("%s: the assignment is %q, want %q", what, got, tt.name)
		}
		if set := Find(envoy.ClusterType, "a", encoded); (set != nil) != (tt.name == "b") || set != nil && set.Assignment != "b" {
			t.Errorf("%s: the references are %+v", what, set)
		}
	}
	if IsEDS([]byte{0xff}) || AssignmentOf("a", []byte{0xff}) != "" {
		t.Error("what cannot be decoded has an assignment")
	}
}
