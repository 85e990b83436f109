// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"slices"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// labelled stands for the workloads of services that have the same labels.
type labelled struct {
	labels registry.Labels
	// grpc is whether some of them may be gRPC servers, by the protocol of a port.
	grpc bool
}

// workloadsOf returns the workloads of the services of a namespace, "" for all, by their labels.
func (f *findings) workloadsOf(namespace string) []labelled {
	if known, ok := f.labelSets[namespace]; ok {
		return known
	}
	seen := make(map[string]int)
	out := []labelled{}
	for _, services := range f.services {
		for _, svc := range services {
			if namespace != "" && svc.Attributes.Namespace != namespace {
				continue
			}
			for e := range f.world.endpoints(svc.Hostname, svc.Attributes.Namespace).All() {
				labels := e.Attributes().Labels
				i, again := seen[labels.String()]
				if !again {
					i = len(out)
					seen[labels.String()] = i
					out = append(out, labelled{labels: labels})
				}
				out[i].grpc = out[i].grpc || mayServeGRPC(svc, e)
			}
		}
	}
	f.labelSets[namespace] = out
	return out
}

// mayServeGRPC reports whether an endpoint of a service may be a gRPC server: the protocol of a port that it serves is gRPC's,
// or not said.
func mayServeGRPC(svc *registry.Service, e *registry.Endpoint) bool {
	return slices.ContainsFunc(svc.Ports, func(p *registry.Port) bool {
		grpc := p.Protocol == registry.ProtocolGRPC || p.Protocol == registry.ProtocolHTTP2 || p.Protocol == registry.ProtocolUnsupported
		return grpc && envoy.Serves(e, p)
	})
}
