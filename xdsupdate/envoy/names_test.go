// SPDX-License-Identifier: Apache-2.0

package envoy_test

import (
	"testing"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

func TestSubsetNames(t *testing.T) {
	for _, n := range []struct{ name, subset string }{{"outbound|80|v1|a.com", "v1"}, {"outbound|80||a.com", ""}} {
		port, subset, host, ok := envoy.ParseSubsetClusterName(n.name)
		if !ok || port != 80 || subset != n.subset || host != "a.com" || envoy.SubsetClusterName(port, subset, host) != n.name {
			t.Errorf("ParseSubsetClusterName(%q) = %d %q %q %t", n.name, port, subset, host, ok)
		}
	}
	for _, n := range []struct{ name, subset string }{{"outbound_.80_.v1_.a.com", "v1"}, {"outbound_.80_._.a.com", ""}} {
		port, subset, host, ok := envoy.ParseSNIName(n.name)
		if !ok || port != 80 || subset != n.subset || host != "a.com" || envoy.SNIName(port, subset, host) != n.name {
			t.Errorf("ParseSNIName(%q) = %d %q %q %t", n.name, port, subset, host, ok)
		}
	}
	for _, bad := range []string{"outbound|80|a.com", "outbound|080||a.com", "outbound|80|v1|", "outbound_.80_.v1_.a.com", "inbound|80||", ""} {
		if _, _, _, ok := envoy.ParseSubsetClusterName(bad); ok {
			t.Errorf("ParseSubsetClusterName(%q) ok", bad)
		}
	}
}

func TestNames(t *testing.T) {
	check := func(what string, port uint32, host registry.Hostname, ok bool, want uint32) {
		t.Helper()
		if port != want || host != "a.com" || !ok {
			t.Errorf("%s: %d %q %t, want port %d", what, port, host, ok, want)
		}
	}
	p, h, ok := envoy.ParseClusterName(envoy.ClusterName(80, "a.com"))
	check("cluster", p, h, ok, 80)
	p, h, ok = envoy.ParseListenerName(envoy.ListenerName(80, "a.com"))
	check("listener", p, h, ok, 80)
	p, h, ok = envoy.ParseListenerName("a.com")
	check("bare listener", p, h, ok, 0)
	for _, name := range []string{
		"", "80", "outbound|80|v1|a.com", "outbound|080||a.com", "outbound|0||a.com", "outbound|+1||a.com",
		"outbound|65536||a.com", "outbound|80||", "inbound|80||a.com",
	} {
		if _, _, ok := envoy.ParseClusterName(name); ok {
			t.Errorf("ParseClusterName(%q) ok", name)
		}
	}
	for _, name := range []string{"", "a.com:", ":80", "a.com:080", "a:b:c", "outbound|80||a.com"} {
		if _, _, ok := envoy.ParseListenerName(name); ok {
			t.Errorf("ParseListenerName(%q) ok", name)
		}
	}
}
