// SPDX-License-Identifier: Apache-2.0

package registry_test

import (
	"slices"
	"testing"

	"github.com/pilotkit/pilotkit/registry"
)

func TestAddressesFor(t *testing.T) {
	service := registry.Service{
		DefaultAddress:    registry.UnspecifiedAddress,
		AutoAllocatedIPv4: "240.240.0.5", AutoAllocatedIPv6: "2001:2::f0f0:5",
		ClusterVIPs: map[registry.ClusterID][]string{"east": {"10.0.0.1", "2001:db8::1"}},
	}
	declared := service
	declared.DefaultAddress = "10.9.9.9"
	only4 := service
	only4.AutoAllocatedIPv6 = ""
	tests := []struct {
		name    string
		service registry.Service
		proxy   registry.Proxy
		want    []string
	}{
		{"no DNS", service, registry.Proxy{IPAddresses: []string{"1.1.1.1"}}, []string{"0.0.0.0"}},
		{"DNS without allocation", service, registry.Proxy{DNSCapture: true}, []string{"0.0.0.0"}},
		{"allocated", service, proxyWith("1.1.1.1"), []string{"240.240.0.5"}},
		{"allocated, IPv6", service, proxyWith("2001:db8::9"), []string{"2001:2::f0f0:5"}},
		{"allocated, both families", service, proxyWith("2001:db8::9", "1.1.1.1"), []string{"240.240.0.5"}},
		{"allocated, no address known", service, proxyWith(), []string{"240.240.0.5"}},
		{"not allocated for the family", only4, proxyWith("2001:db8::9"), []string{"0.0.0.0"}},
		{"declared", declared, proxyWith("1.1.1.1"), []string{"10.9.9.9"}},
		{"own cluster", service, registry.Proxy{ClusterID: "east", IPAddresses: []string{"1.1.1.1"}}, []string{"10.0.0.1"}},
		{"own cluster, both families", service, registry.Proxy{ClusterID: "east"}, []string{"10.0.0.1", "2001:db8::1"}},
		{"other cluster", declared, registry.Proxy{ClusterID: "west"}, []string{"10.9.9.9"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.service.AddressesFor(&tt.proxy); !slices.Equal(got, tt.want) {
				t.Errorf("AddressesFor(%+v) = %v, want %v", tt.proxy, got, tt.want)
			}
		})
	}
	if got := service.ClusterVIPs["east"]; len(got) != 2 {
		t.Errorf("AddressesFor changed the service: %v", got)
	}
}

func proxyWith(addresses ...string) registry.Proxy {
	return registry.Proxy{IPAddresses: addresses, DNSCapture: true, DNSAutoAllocate: true}
}
