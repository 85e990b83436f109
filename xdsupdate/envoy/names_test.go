// SPDX-License-Identifier: Apache-2.0

package envoy_test

import (
	"testing"

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
