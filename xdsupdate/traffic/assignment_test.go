// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"testing"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

// TestHostInTwoNamespaces: a Sidecar decides of which service a client gets the
// endpoints, also where no other policy makes a difference and the server would
// choose the older service.
func TestHostInTwoNamespaces(t *testing.T) {
	m := startMesh(t, traffic.Options{})
	m.must(m.registry.SetService(&registry.Service{
		Hostname: host, DefaultAddress: registry.UnspecifiedAddress, CreationTime: time.Unix(2, 0),
		Ports:      []*registry.Port{{Name: "grpc", Number: 80, Protocol: registry.ProtocolGRPC}},
		Attributes: registry.ServiceAttributes{Name: host, Namespace: "billing"},
	}))
	for namespace, address := range map[string]string{"shop": "10.0.0.1", "billing": "10.0.0.2"} {
		m.must(m.registry.SetEndpoints(host, namespace, []*registry.Endpoint{{
			Addresses: []string{address}, EndpointPort: 80, ServicePortName: "grpc", HealthStatus: registry.Healthy,
		}}))
	}
	_, err := configstore.Upsert(m.store, configstore.NewConfig("only", "jobs", &networking.Sidecar{
		Egress: []*networking.IstioEgressListener{{Hosts: []string{"billing/*"}}},
	}).Config())
	m.must(err)
	m.store.Drain()
	m.applied()
	for namespace, want := range map[string]string{"jobs": "10.0.0.2", "other": "10.0.0.1", "billing": "10.0.0.2"} {
		if got := m.addressOf(namespace, "outbound|80||"+host); got != want {
			t.Errorf("a sidecar of %s gets %s, want %s", namespace, got, want)
		}
	}
}

// addressOf returns the first address that a new sidecar of a namespace gets for a
// cluster.
func (m *mesh) addressOf(namespace, cluster string) string {
	m.t.Helper()
	conn, err := grpc.NewClient(m.address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	m.must(err)
	defer func() { _ = conn.Close() }()
	c := xdstest.NewClient(conn, xdstest.ClientOptions{
		Delta: true, Node: &core.Node{Id: "sidecar~10.9.0.1~app." + namespace + "~" + namespace + ".svc.cluster.local"},
	})
	defer c.Close()
	m.must(c.Connect(m.ctx))
	m.must(c.Subscribe(envoy.LoadAssignmentType, cluster))
	m.must(c.Await(m.ctx, func(s xdstest.State) bool { return s.Has(envoy.LoadAssignmentType, cluster) }))
	message, err := c.State().Resources(envoy.LoadAssignmentType)[cluster].Message()
	m.must(err)
	return message.(*endpointv3.ClusterLoadAssignment).GetEndpoints()[0].GetLbEndpoints()[0].GetEndpoint().GetAddress().GetSocketAddress().GetAddress()
}
