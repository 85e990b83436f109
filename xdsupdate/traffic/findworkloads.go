// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"cmp"
	"slices"

	"github.com/pilotkit/pilotkit/internal/xdsbuild"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/objects"
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

// connectedSidecar stands for the connected sidecars of one view. A policy treats all of them
// alike.
type connectedSidecar struct {
	*proxy
	id string // of the first sidecar
	n  int
}

// sidecarsAmong returns the sidecars among connected proxies, grouped by the view that the named
// provider sees, in the order of the first sidecar in each view.
func (x *provided) sidecarsAmong(connected []ads.ProxyStatus, provider string) (out []*connectedSidecar) {
	byProxy := make(map[*proxy]*connectedSidecar)
	for _, status := range connected {
		p := x.proxy(status.View.SeenBy(provider))
		if p.Role != objects.SidecarProxy {
			continue
		}
		if byProxy[p] == nil {
			byProxy[p] = &connectedSidecar{proxy: p, id: status.ID}
			out = append(out, byProxy[p])
		}
		byProxy[p].n++
	}
	return out
}

// unenforced adds a finding for a policy for the inbound side of connected sidecars, because the
// inbound side is not configured.
func (f *findings) unenforced(o objects.Object, sidecars []*connectedSidecar) {
	selects := f.inboundPolicy(o)
	if selects == nil {
		return
	}
	first, n := "", 0
	for _, s := range sidecars {
		if selects(s.proxy) {
			first, n = cmp.Or(first, s.id), n+s.n
		}
	}
	if n > 0 {
		f.add("", "the inbound side of sidecars is not configured: connected sidecars do not enforce it: %s", andMore(first, n))
	}
}

// inboundPolicy returns a predicate for the sidecars whose inbound side an object should protect.
// It is nil if the object is not such a policy.
func (st *state) inboundPolicy(o objects.Object) func(*proxy) bool {
	within := func(namespace string, t *objects.PolicyTarget) func(*proxy) bool {
		if len(t.Targets) > 0 {
			return nil
		}
		return func(p *proxy) bool {
			return (namespace == p.Namespace || namespace == st.settings.RootNamespace()) && t.Selector.SubsetOf(p.Labels)
		}
	}
	switch o := o.(type) {
	case *objects.AuthorizationPolicy:
		return within(o.Namespace, &o.PolicyTarget)
	case *objects.RequestAuthentication:
		return within(o.Namespace, &o.PolicyTarget)
	case *objects.PeerAuthentication:
		if o.Spec.GetMtls().GetMode() == objects.Strict {
			selected := within(o.Namespace, &objects.PolicyTarget{Selector: o.Selector})
			return func(p *proxy) bool {
				return selected(p) && st.PeerMode(p.Namespace, p.Labels, 0).Mode == objects.Strict
			}
		}
	}
	return nil
}
