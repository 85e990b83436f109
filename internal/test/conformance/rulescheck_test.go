// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"slices"
	"testing"
)

// TestRules checks the rules that are functions of values, with values that the recorded scenarios
// lack.
func TestRules(t *testing.T) {
	for _, tt := range []struct{ v4, v6, want string }{
		{"240.240.0.17", "2001:2::f0f0:11", "2001:2::f0f0:11"},
		{"240.240.1.1", "2001:2::f0f0:11", "2001:2::f0f0:101"},
		{"240.240.61.72", "2001:2::f0f0:3d48", "2001:2::f0f0:3d48"},
		{"", "", ""},
	} {
		if got := row14PaddedIPv6(tt.v4, tt.v6); got != tt.want {
			t.Errorf("row14PaddedIPv6(%q, %q) = %q, want %q", tt.v4, tt.v6, got, tt.want)
		}
	}
	label := map[string]string{labelNetwork: "l"}
	for _, tt := range []struct {
		e    endpoint
		want string
	}{{endpoint{Network: "f", Labels: label}, "f"}, {endpoint{Labels: label}, "l"}, {endpoint{}, ""}} {
		if got := row11EffectiveNetwork(tt.e).Network; got != tt.want {
			t.Errorf("row11EffectiveNetwork(%+v) = %q, want %q", tt.e, got, tt.want)
		}
	}
	for ip, want := range map[string]bool{"1.1.1.1": true, "2001:db8::1": true, "": false, "vm.example.org": false, "unix:///s": false} {
		if got := row3OnlyIPs(ip); got != want {
			t.Errorf("row3OnlyIPs(%q) = %t", ip, got)
		}
	}
	calls := []serviceHandlerCall{{Handler: "aggregate"}, {Handler: "aggregate/a"}, {Handler: "aggregate/b"}}
	if got := row17OwnCluster(calls, "b"); !slices.Equal(got, []serviceHandlerCall{calls[0], calls[2]}) {
		t.Errorf("row17OwnCluster = %v", got)
	}
	if got := row17NotifiedOnce(append(calls, calls...)); !slices.Equal(got, calls) {
		t.Errorf("row17NotifiedOnce = %v", got)
	}
	for topicAndName, want := range map[[2]string]bool{
		{"pods", "same-name-pods"}: true, {"pods", "same-address"}: false,
		{"aggregate", "remote-workloadentry-collision"}: true, {"aggregate", "remote-workloadentries"}: false,
	} {
		if got := row2SameNames(topicAndName[0], topicAndName[1]); got != want {
			t.Errorf("row2SameNames(%v) = %t", topicAndName, got)
		}
	}
	twice := []endpoint{{Addresses: []string{"1.1.1.1"}}, {Addresses: []string{"2.2.2.2"}}, {Addresses: []string{"1.1.1.1"}}}
	if got := row5EachEndpointOnce(twice); len(got) != 2 {
		t.Errorf("row5EachEndpointOnce = %v", got)
	}
	e := &expected{proxyAddresses: [][]string{{"1.1.1.1", "1.1.1.2"}, {"1.1.1.2", "1.1.1.3"}, {"2.2.2.2"}}}
	for _, tt := range []struct {
		c    call
		want []string
	}{
		{call{Cluster: "c", IP: "1.1.1.1"}, []string{"c 1.1.1.1", "c 1.1.1.2", "c 1.1.1.3"}},
		{call{Cluster: "c", IP: "1.1.1.1", Source: sourceWorkloads}, nil},
		{call{Cluster: "c", IP: "2.2.2.2"}, nil},
		{call{Cluster: "c", IP: "3.3.3.3"}, nil},
	} {
		if got := e.row16SameProxy(tt.c); !slices.Equal(got, tt.want) {
			t.Errorf("row16SameProxy(%+v) = %v, want %v", tt.c, got, tt.want)
		}
	}
}

// TestPushOfTwins checks when a push for twins may be weaker than recorded.
func TestPushOfTwins(t *testing.T) {
	k := key{"a.example.com", "ns1"}
	healthy, hidden := endpoint{WorkloadName: "h", HealthStatus: "Healthy"}, endpoint{WorkloadName: "u", HealthStatus: "UnHealthy"}
	sent := hidden
	sent.SendUnhealthyEndpoints = true
	index := func(endpoints ...endpoint) indexState { return indexState{k: {"shard": endpoints}} }
	for _, tt := range []struct {
		name           string
		before, after  indexState
		recorded, want string
	}{
		{"a twin goes", index(healthy, hidden), index(healthy), noPush, incrementalPush},
		{"a hidden one comes", index(healthy), index(healthy, hidden), incrementalPush, noPush},
		{"one to be sent comes", index(healthy), index(healthy, sent), incrementalPush, incrementalPush},
		{"a healthy one becomes another", index(healthy), index(hidden), incrementalPush, incrementalPush},
		{"a hidden one goes", index(healthy, hidden), index(healthy), incrementalPush, incrementalPush},
		{"the first comes", nil, index(hidden), incrementalPush, incrementalPush},
		{"a new identity", index(healthy), index(healthy, hidden), fullPush, fullPush},
	} {
		e := &expected{before: tt.before, all: pushes{after: tt.after}}
		if got := e.pushOfTwins(k, tt.recorded); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.name, got, tt.want)
		}
	}
}
