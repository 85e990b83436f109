// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"slices"

	"github.com/pilotkit/pilotkit/internal/xdsbuild"
	"github.com/pilotkit/pilotkit/registry"
)

// labelled stands for all workloads with equal labels.
type labelled struct {
	labels registry.Labels
	// grpc reports whether one of these workloads may be a gRPC server, judging by the protocol of
	// its ports.
	grpc bool
}

// workloadsOf returns the workloads of the services in a namespace, grouped by labels. An empty
// namespace stands for all.
func (f *findings) workloadsOf(namespace string) []labelled {
	return f.labelSets.Get(namespace, func() []labelled { return f.labelsIn(namespace) })
}

func (f *findings) labelsIn(namespace string) []labelled {
	seen := make(map[string]int)
	out := []labelled{}
	for _, services := range f.world.Hosts() {
		for _, svc := range services {
			if namespace != "" && svc.Attributes.Namespace != namespace {
				continue
			}
			for e := range f.world.Endpoints(svc).All() {
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
	return out
}

// mayServeGRPC reports whether an endpoint may be a gRPC server, because a port that it serves has
// the protocol GRPC or HTTP2, or an unspecified one.
func mayServeGRPC(svc *registry.Service, e *registry.Endpoint) bool {
	return slices.ContainsFunc(svc.Ports, func(p *registry.Port) bool {
		grpc := p.Protocol == registry.ProtocolGRPC || p.Protocol == registry.ProtocolHTTP2 || p.Protocol == registry.ProtocolUnsupported
		return grpc && xdsbuild.Serves(e, p)
	})
}
