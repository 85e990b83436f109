// SPDX-License-Identifier: Apache-2.0

package xdsbuild_test

import (
	"testing"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

	"github.com/pilotkit/pilotkit/internal/xdsbuild"
	"github.com/pilotkit/pilotkit/registry"
)

func TestHTTPRoutes(t *testing.T) {
	svc := service(registry.ClientSideLB)
	p := svc.Ports[0]
	a := xdsbuild.VirtualHost(svc, p, []string{"10.1.1.1", "2001:db8::1", "10.2.0.0/16", "0.0.0.0"})
	check(t, "domains", a.GetDomains(), []string{
		"a.com", "a.com:80", "10.1.1.1", "10.1.1.1:80", "[2001:db8::1]", "[2001:db8::1]:80",
	})
	svc.Hostname = "B.com"
	b := xdsbuild.VirtualHost(svc, p, []string{"10.1.1.1"})
	svc.Hostname = "b.com"
	again := xdsbuild.VirtualHost(svc, p, nil)
	rc := xdsbuild.HTTPRoutes(80, []*routev3.VirtualHost{a, b, again})
	var domains [][]string
	for _, h := range rc.GetVirtualHosts() {
		domains = append(domains, h.GetDomains())
	}
	check(t, "no domain twice", domains[1:], [][]string{{"b.com", "b.com:80"}})
	mapped := xdsbuild.VirtualHost(svc, p, []string{"::ffff:10.1.1.1", "::ffff:0.0.0.0", "0::0"})
	check(t, "IPv4 as IPv6", mapped.GetDomains(), []string{"b.com", "b.com:80", "10.1.1.1", "10.1.1.1:80"})
	for _, none := range []string{"", "0.0.0.0", "0:0::0", "::ffff:0.0.0.0"} {
		svc.DefaultAddress, svc.AutoAllocatedIPv4 = none, "240.240.0.1"
		check(t, "addresses of "+none, xdsbuild.VIPs(svc), []string{"240.240.0.1"})
	}
	tcp := *p
	tcp.Protocol = registry.ProtocolTCP
	if xdsbuild.VirtualHost(svc, &tcp, nil) != nil {
		t.Error("a virtual host for TCP")
	}
}
