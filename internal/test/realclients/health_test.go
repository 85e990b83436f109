// SPDX-License-Identifier: Apache-2.0

package realclients

import (
	"testing"
	"time"

	meta "istio.io/api/meta/v1alpha1"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/registry"
)

// endpoint returns the backend as an endpoint of a registry that is filled by hand.
func (b *backend) endpoint(health registry.HealthStatus) *registry.Endpoint {
	return &registry.Endpoint{
		Addresses: []string{"127.0.0.1"}, EndpointPort: b.port, ServicePortName: "grpc", HealthStatus: health,
	}
}

func (p *plane) setEndpoints(endpoints ...*registry.Endpoint) {
	p.TB.Helper()
	if err := p.hosts.SetEndpoints(host, "shop", endpoints); err != nil {
		p.TB.Fatal(err)
	}
}

// TestUnhealthyEndpoints: an endpoint that is served with its health gets calls
// only while it is healthy.
func TestUnhealthyEndpoints(t *testing.T) {
	eachClient(t, func(s *scene) {
		one, two := s.backend("one"), s.backend("two")
		p := s.plane()
		if err := p.hosts.SetService(&registry.Service{
			Hostname: host, DefaultAddress: registry.UnspecifiedAddress, CreationTime: time.Unix(1, 0),
			Ports:      []*registry.Port{{Name: "grpc", Number: 80, Protocol: registry.ProtocolGRPC}},
			Attributes: registry.ServiceAttributes{Name: "api", Namespace: "shop", ObjectName: "api"},
		}); err != nil {
			s.Fatal(err)
		}
		p.setEndpoints(one.endpoint(registry.Healthy), two.endpoint(registry.UnHealthy))
		p.Applied()
		c := s.call(p, target)
		c.follow("one")
		p.setEndpoints(one.endpoint(registry.Healthy), two.endpoint(registry.Healthy))
		c.follow("one", "two")
		p.setEndpoints(one.endpoint(registry.UnHealthy), two.endpoint(registry.Healthy))
		c.follow("two")
		p.setEndpoints(one.endpoint(registry.UnHealthy), two.endpoint(registry.UnHealthy))
		c.fails()
		p.setEndpoints(one.endpoint(registry.Healthy), two.endpoint(registry.UnHealthy))
		c.recover("one")
		p.Accepted()
	})
}

// TestHealthChecks: a WorkloadEntry whose health checks fail is no endpoint. The
// target has no port.
func TestHealthChecks(t *testing.T) {
	eachClient(t, func(s *scene) {
		one, two := s.backend("one"), s.backend("two")
		p := s.plane(
			edited(func(spec *networking.ServiceEntry) {
				spec.WorkloadSelector = &networking.WorkloadSelector{Labels: map[string]string{"app": "api"}}
			}),
			workload(one, "True"), workload(two, "False"))
		c := s.call(p, "xds:///"+host)
		c.follow("one")
		p.updateStatus(workload(two, "True"))
		c.follow("one", "two")
		p.updateStatus(workload(one, "False"))
		c.follow("two")
		p.Accepted()
	})
}

// workload returns a backend as a WorkloadEntry with the result of a health check.
func workload(b *backend, healthy string) configstore.Config {
	e := b.entry()
	e.Labels = map[string]string{"app": "api"}
	return configstore.Config{
		Meta: configstore.Meta{
			GroupVersionKind: istio.WorkloadEntry, Name: b.name, Namespace: "shop",
			Annotations: map[string]string{"proxy.istio.io/health-checks-enabled": "true"},
		},
		Spec:   e,
		Status: &meta.IstioStatus{Conditions: []*meta.IstioCondition{{Type: "Healthy", Status: healthy}}},
	}
}

func (p *plane) updateStatus(c configstore.Config) {
	p.TB.Helper()
	if _, err := p.Configs.UpdateStatus(c); err != nil {
		p.TB.Fatal(err)
	}
}
