// SPDX-License-Identifier: Apache-2.0

package xdsbuild_test

import (
	"fmt"
	"testing"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/proto"

	"github.com/pilotkit/pilotkit/internal/xdsbuild"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// TestPrepared: the concatenation of encoded endpoints equals the load assignment, independent of
// the order of the endpoints and of earlier preparations.
func TestPrepared(t *testing.T) {
	svc := service(registry.ClientSideLB)
	one, two, three := endpoint("10.0.0.1"), endpoint("10.0.0.2", locality("a")), endpoint("10.0.0.3", weight(3))
	for name, endpoints := range map[string][]*registry.Endpoint{
		"none":                     nil,
		"in order":                 {one, two, three},
		"in another order":         {three, one, two},
		"unhealthy":                {one, endpoint("10.0.0.4", health(registry.UnHealthy))},
		"an address in two texts":  {one, endpoint("::ffff:10.0.0.1")},
		"an address twice":         {endpoint("10.0.0.1", health(registry.Draining)), one},
		"ports":                    {endpoint("10.0.0.1", port(65535)), endpoint("10.0.0.2", port(65536)), endpoint("10.0.0.3", port(0))},
		"a name that is not UTF-8": {endpoint("10.0.0.1", func(e *registry.Endpoint) { e.WorkloadName = "a\xff" })},
		"a unix socket":            {one, endpoint("/run/a.sock")},
		"a host name":              {one, endpoint("a.example.com")},
	} {
		before := xdsbuild.Prepare(svc.Ports[0], []*registry.Endpoint{one, three}, nil)
		for _, client := range []envoy.Client{envoy.ForEnvoy, envoy.ForGRPC} {
			want := xdsbuild.LoadAssignment(svc, svc.Ports[0], endpoints, client)
			for what, old := range map[string]*xdsbuild.Prepared{"": nil, ", some prepared before": before} {
				var got endpointv3.ClusterLoadAssignment
				if err := proto.Unmarshal(xdsbuild.Prepare(svc.Ports[0], endpoints, old).Encode(svc.Hostname, nil, client), &got); err != nil {
					t.Fatal(err)
				}
				if !proto.Equal(&got, want) {
					check(t, fmt.Sprintf("%s%s, client %d", name, what, client), text(&got), text(want))
				}
			}
		}
	}
}

// TestSentEndpoints: the kept and the omitted endpoints in the cases of TestPrepared.
func TestSentEndpoints(t *testing.T) {
	svc := service(registry.ClientSideLB)
	for name, tt := range map[string]struct {
		endpoints []*registry.Endpoint
		want      []string
	}{
		"ports":                   {[]*registry.Endpoint{endpoint("10.0.0.1", port(65535)), endpoint("10.0.0.2", port(65536))}, []string{"//@0=1 10.0.0.1:65535/HEALTHY"}},
		"unhealthy":               {[]*registry.Endpoint{endpoint("10.0.0.4", health(registry.UnHealthy))}, []string{}},
		"an address in two texts": {[]*registry.Endpoint{endpoint("10.0.0.1"), endpoint("::ffff:10.0.0.1")}, []string{"//@0=1 10.0.0.1:8080/HEALTHY"}},
		"a name that is not UTF-8": {[]*registry.Endpoint{endpoint("10.0.0.1", func(e *registry.Endpoint) { e.WorkloadName = "a\xff" })}, []string{
			"//@0=1 10.0.0.1:8080/HEALTHY",
		}},
	} {
		var got endpointv3.ClusterLoadAssignment
		if err := proto.Unmarshal(xdsbuild.Prepare(svc.Ports[0], tt.endpoints, nil).Encode(svc.Hostname, nil, envoy.ForEnvoy), &got); err != nil {
			t.Fatal(err)
		}
		check(t, name, text(&got), tt.want)
	}
}
