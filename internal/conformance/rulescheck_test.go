// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"slices"
	"testing"
)

// TestRules checks the rules that are functions of values, at values of which the
// recorded scenarios have no example.
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
	if got := row17ToldOnce(append(calls, calls...)); !slices.Equal(got, calls) {
		t.Errorf("row17ToldOnce = %v", got)
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
}
