// SPDX-License-Identifier: Apache-2.0

package gatewayapi

import (
	"context"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"

	corev1 "k8s.io/api/core/v1"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/internal/test/routecheck"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/route"
)

// routed compares the routers of all Gateways with the predictions of package routesim, and returns
// the number of compared calls.
func (s *system) routed(ctx context.Context, name string) (calls int, err error) {
	var configs []configstore.Config
	for _, kind := range configKinds {
		for _, c := range s.converter.Snapshot().Configs(kind) {
			configs = append(configs, *c)
		}
	}
	for ref, entry := range s.entries {
		configs = append(configs, configstore.Config{
			Meta: configstore.Meta{GroupVersionKind: istio.ServiceEntry, Namespace: ref.Namespace, Name: ref.Name}, Spec: entry.Spec,
		})
	}
	var services []*registry.Service
	for _, object := range s.read {
		if service, ok := object.(*corev1.Service); ok {
			services = append(services, inRegistry(service))
		}
	}
	plane, err := routecheck.NewPlane(ctx, configs, services)
	if err != nil {
		return 0, err
	}
	for ref := range s.read {
		if ref.Kind != string(KindGateway) {
			continue
		}
		sent, err := plane.Sent(&registry.Proxy{Namespace: ref.Namespace, Labels: registry.Labels{"gateway.networking.k8s.io/gateway-name": ref.Name}})
		if err != nil {
			return calls, err
		}
		n, err := sent.Check(route.Gateway, rand.New(rand.NewChaCha8(sha256.Sum256([]byte(name+ref.Name)))))
		if calls += n; err != nil {
			return calls, fmt.Errorf("gateway %v: %w", ref, err)
		}
	}
	return calls, nil
}

// inRegistry returns the service of a registry.
func inRegistry(s *corev1.Service) *registry.Service {
	out := &registry.Service{
		Hostname:   registry.Hostname(s.Name + "." + s.Namespace + ".svc.cluster.local"),
		Attributes: registry.ServiceAttributes{Namespace: s.Namespace, Name: s.Name},
	}
	for _, p := range s.Spec.Ports {
		out.Ports = append(out.Ports, &registry.Port{Name: p.Name, Number: uint32(p.Port), Protocol: registry.ProtocolHTTP}) //nolint:gosec // a port
	}
	return out
}
