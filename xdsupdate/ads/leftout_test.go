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
