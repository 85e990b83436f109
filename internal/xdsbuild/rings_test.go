// SPDX-License-Identifier: Apache-2.0

package xdsbuild_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	meshconfig "istio.io/api/mesh/v1alpha1"

	"github.com/pilotkit/pilotkit/internal/test/envoyproxy"
	"github.com/pilotkit/pilotkit/internal/xdsbuild"
	"github.com/pilotkit/pilotkit/registry"
)

func hashedBy(hash string) string {
	return `{"host":"a.com","trafficPolicy":{"loadBalancer":{"consistentHash":{"httpHeaderName":"x"` + hash + `}}}}`
}

// TestRings: the sizes of rings and tables are bounded for any setting, and Envoy accepts the sizes
// of tables.
func TestRings(t *testing.T) {
	for hash, want := range map[string]struct{ minimum, maximum, table uint64 }{
		``: {1024, 65536, 0},
		`,"ringHash":{"minimumRingSize":"100000"}`:  {100000, 100000, 0},
		`,"ringHash":{"minimumRingSize":"8388608"}`: {1 << 20, 1 << 20, 0},
		`,"minimumRingSize":"99999999999"`:          {1 << 20, 1 << 20, 0},
		`,"ringHash":{}`:                            {0, 65536, 0},
		`,"maglev":{"tableSize":"65537"}`:           {0, 0, 65537},
		`,"maglev":{"tableSize":"1048573"}`:         {0, 0, 1048573},
		`,"maglev":{"tableSize":"429"}`:             {},
		`,"maglev":{"tableSize":"4999999"}`:         {},
		`,"maglev":{}`:                              {},
	} {
		u := upstream(t, service(registry.ClientSideLB), hashedBy(hash), "", &meshconfig.MeshConfig{})
		c := u.Cluster()
		if err := accepted(u.Client, c); err != nil {
			t.Errorf("%s: %v", hash, err)
		}
		ring := c.GetRingHashLbConfig()
		if ring.GetMinimumRingSize().GetValue() != want.minimum || ring.GetMaximumRingSize().GetValue() != want.maximum ||
			c.GetMaglevLbConfig().GetTableSize().GetValue() != want.table {
			t.Errorf("%s: %v, %v", hash, ring, c.GetMaglevLbConfig())
		}
	}
}

// TestMemoryOfRings: endpoints of very different weights cost an Envoy little; a ring
// without a largest size is of 200 MB, and twice that while it is made.
func TestMemoryOfRings(t *testing.T) {
	u := upstream(t, service(registry.ClientSideLB), hashedBy(""), "", &meshconfig.MeshConfig{})
	u.Endpoints = []*registry.Endpoint{
		endpoint("127.0.0.1", locality("eu/a"), weight(1)), endpoint("127.0.0.2", locality("eu/a"), weight(4_000_000_000)),
	}
	c := u.Cluster()
	c.ClusterDiscoveryType, c.EdsClusterConfig = &clusterv3.Cluster_Type{Type: clusterv3.Cluster_STATIC}, nil
	c.LoadAssignment = u.LoadAssignment()
	proxy := envoyproxy.Start(t, envoyproxy.Options{Clusters: []*clusterv3.Cluster{c}})
	proxy.AwaitReady()
	var memory struct {
		Allocated json.Number `json:"allocated"`
	}
	if err := json.Unmarshal(proxy.Admin("/memory"), &memory); err != nil {
		t.Fatal(err)
	}
	if n, err := memory.Allocated.Int64(); err != nil || n > 64<<20 || n == 0 {
		t.Errorf("the Envoy has allocated %s bytes, %v", memory.Allocated, err)
	}
}

// TestManyPriorities: more labels than an Envoy has priorities make no more priorities
// than it takes, and no locality twice in one of them.
func TestManyPriorities(t *testing.T) {
	labels := make([]string, 200)
	for i := range labels {
		labels[i] = fmt.Sprintf(`"l%d=x"`, i)
	}
	u := upstream(t, service(registry.ClientSideLB), `{"host":"a.com","trafficPolicy":{"outlierDetection":{},"loadBalancer":{"localityLbSetting":{"failoverPriority":[`+
		strings.Join(labels, ",")+`]}}}}`, "", &meshconfig.MeshConfig{})
	u.Proxy = &registry.Proxy{Locality: "eu/a"}
	for i := range 200 {
		e := endpoint(fmt.Sprintf("10.0.0.%d", i), locality([]string{"eu/a", "eu/b"}[i%2]))
		e.Shared.Labels = registry.Labels{}
		for j := range i {
			e.Shared.Labels[fmt.Sprintf("l%d", j)] = "x"
		}
		u.Endpoints = append(u.Endpoints, e)
	}
	a := u.LoadAssignment()
	if err := accepted(u.Client, a); err != nil {
		t.Error(err)
	}
	highest, endpoints := uint32(0), 0
	for _, l := range a.GetEndpoints() {
		highest = max(highest, l.GetPriority())
		endpoints += len(l.GetLbEndpoints())
	}
	if highest != 31 || endpoints != 200 {
		t.Errorf("%d endpoints of priorities up to %d", endpoints, highest)
	}
	if n := xdsbuild.HashEntries(u.Policy.GetLoadBalancer()); n != 0 {
		t.Errorf("%d entries without a hash", n)
	}
}
