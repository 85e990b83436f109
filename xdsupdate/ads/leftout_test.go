// SPDX-License-Identifier: Apache-2.0

package ads_test

import (
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

// TestLeftOutEndpoints: an endpoint that Envoy would refuse is warned of once for
// each service that has it, however often the service is pushed and whoever asks
// for it, and again when it comes back.
func TestLeftOutEndpoints(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log lockedBuffer
		twoPorts := service("a", "shop")
		twoPorts.Ports = append(twoPorts.Ports, &registry.Port{Name: "http", Number: 81, Protocol: registry.ProtocolHTTP})
		f := serve(t, ads.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}, twoPorts, service("a", "mall"), service("b", "shop"))
		for name, delta := range protocols() {
			c := f.client(xdstest.ClientOptions{Delta: delta, Node: node(name, "shop")})
			f.subscribe(c, envoy.LoadAssignmentType, cluster("a"), cluster("b"))
			f.await(c, envoy.LoadAssignmentType, cluster("a"), cluster("b"))
		}
		long, nul := "/"+strings.Repeat("x", 107), "@a\x00b"
		weighted := func(address string, weight uint32) *registry.Endpoint {
			e := endpoint(address, 80)
			e.Shared = &registry.EndpointAttributes{LbWeight: weight}
			return e
		}
		onPort81 := func(address string) *registry.Endpoint {
			e := endpoint(address, 81)
			e.ServicePortName = "http"
			return e
		}
		warned := func(what string, want ...string) {
			t.Helper()
			f.waitApplied()
			var got []string
			for line := range strings.Lines(log.take()) {
				if strings.Contains(line, "endpoint left out") {
					got = append(got, strings.TrimSpace(line[strings.Index(line, "host="):]))
				}
			}
			check(t, what, got, want)
		}
		tooLong := `reason="unix socket \"/` + strings.Repeat("x", 31) + `\"… is 108 bytes long, at most 107 are possible"`
		withNUL := `reason="unix socket \"@a\\x00b\": not UTF-8, or with a NUL"`

		f.eds("a", "shop", endpoint("10.0.0.1", 80), endpoint("/run/good", 80), endpoint(long, 80), onPort81(long))
		warned("one too long, on two ports", "host=a namespace=shop "+tooLong)
		f.eds("a", "shop", endpoint("10.0.0.2", 80), weighted(long, 3))
		warned("the same with other attributes")
		f.define(nil, twoPorts, service("a", "mall"), service("b", "shop"))
		warned("a push of everything")
		f.eds("a", "shop", weighted(long, 3), endpoint(nul, 80))
		warned("one more", "host=a namespace=shop "+withNUL)
		f.eds("a", "mall", endpoint(long, 80))
		f.flush()
		f.eds("b", "shop", endpoint(long, 80))
		warned("other services", "host=a namespace=mall "+tooLong, "host=b namespace=shop "+tooLong)
		f.eds("a", "shop", endpoint("10.0.0.1", 80))
		warned("gone")
		f.eds("a", "shop", endpoint(long, 80))
		warned("back", "host=a namespace=shop "+tooLong)
	})
}

// TestLeftOutPorts: a port of which clients are sent nothing, because they would refuse
// it, is warned of once, with the reason, and again when it comes back.
func TestLeftOutPorts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log lockedBuffer
		f := serve(t, ads.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		c := f.client(xdstest.ClientOptions{Node: node("a", "shop")})
		f.subscribe(c, envoy.ClusterType)
		number := func(n uint32) func(*registry.Service) {
			return func(s *registry.Service) { s.Ports = []*registry.Port{s.Ports[0], {Name: "x", Number: n}} }
		}
		target := func(s *registry.Service) {
			s.Resolution = registry.Passthrough
			s.Attributes.PassthroughTargetPorts = map[uint32]uint32{80: 70000}
		}
		warned := func(what string, want int, reason string) {
			t.Helper()
			f.waitApplied()
			said := log.take()
			check(t, what+": warnings", strings.Count(said, "port left out"), want)
			check(t, what+": "+reason, strings.Count(said, reason), want)
		}
		for what, bad := range map[string]struct {
			service *registry.Service
			reason  string
		}{
			"no port":     {service("a", "shop", number(0)), "port 0: not from 1 to 65535"},
			"large port":  {service("a", "shop", number(70000)), "port 70000: not from 1 to 65535"},
			"target port": {service("a", "shop", target), "port 80: target port 70000 is more than 65535"},
			"host name":   {service("a|b", "shop"), "with a space or a bar"},
		} {
			host := string(bad.service.Hostname)
			f.define([]string{host, "good"}, bad.service, service("good", "shop"))
			warned(what, 1, bad.reason)
			if !c.State().Has(envoy.ClusterType, cluster("good")) {
				t.Errorf("%s: the good cluster is missing", what)
			}
			f.eds(host, "shop", endpoint("10.0.0.1", 80))
			f.define([]string{host}, bad.service, service("good", "shop"))
			warned(what+", once more", 0, bad.reason)
			f.define([]string{host}, service("good", "shop"))
			warned(what+", gone", 0, bad.reason)
			f.define([]string{host}, bad.service, service("good", "shop"))
			warned(what+", back", 1, bad.reason)
			f.define([]string{host}, service("good", "shop"))
			f.waitApplied()
		}
	})
}
