// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"maps"
	"slices"
	"strings"

	meshconfig "istio.io/api/mesh/v1alpha1"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
)

// facts are the content of the store after a step, as far as the rules need it.
type facts struct {
	mesh            *meshconfig.MeshConfig
	services        []hostService
	virtualServices []*configstore.Config
	rules           []*configstore.Config
	gateways        []*configstore.Config
	sidecars        []*configstore.Config
	policies        []*configstore.Config
	peers           []*configstore.Config
	workloads       []*configstore.Config
	// refused are the objects whose last state we refuse and Istio takes, with its specs.
	refused map[objectRef]any
	// authentications are RequestAuthentications.
	authentications []*configstore.Config
}

// hostService is one host of a ServiceEntry.
type hostService struct {
	host  string
	entry *configstore.Config
	spec  *networking.ServiceEntry
}

func newFacts(sys *system) *facts {
	list := func(kind configstore.GroupVersionKind) []*configstore.Config {
		out := slices.Clone(sys.store.List(kind, configstore.NamespaceAll))
		slices.SortStableFunc(out, func(a, b *configstore.Config) int { return a.CreationTimestamp.Compare(b.CreationTimestamp) })
		return out
	}
	f := &facts{
		mesh: sys.mesh, virtualServices: list(istio.VirtualService), rules: list(istio.DestinationRule),
		gateways: list(istio.Gateway), sidecars: list(istio.Sidecar), policies: list(istio.AuthorizationPolicy),
		peers: list(istio.PeerAuthentication), workloads: list(istio.WorkloadEntry),
		refused: maps.Clone(sys.refused), authentications: list(istio.RequestAuthentication),
	}
	for _, c := range list(istio.ServiceEntry) {
		spec := c.Spec.(*networking.ServiceEntry)
		for _, host := range spec.GetHosts() {
			f.services = append(f.services, hostService{host, c, spec})
		}
	}
	return f
}

// visible reports whether a namespace sees a service.
func (s hostService) visible(namespace string, mesh *meshconfig.MeshConfig) bool {
	to := s.spec.GetExportTo()
	if len(to) == 0 {
		to = mesh.GetDefaultServiceExportTo()
	}
	return len(to) == 0 || slices.Contains(to, "*") || slices.Contains(to, namespace) ||
		slices.Contains(to, ".") && s.entry.Namespace == namespace
}

// of returns the entries of a host name that a proxy uses: those of its own namespace, or else of
// the oldest visible one.
func (f *facts) of(host string, p proxySpec) []hostService {
	var out []hostService
	for _, s := range f.services {
		if !strings.EqualFold(s.host, host) || !s.visible(p.Namespace, f.mesh) {
			continue
		}
		switch {
		case len(out) == 0 || s.entry.Namespace == out[0].entry.Namespace:
			out = append(out, s)
		case s.entry.Namespace == p.Namespace && out[0].entry.Namespace != p.Namespace:
			out = []hostService{s}
		}
	}
	return out
}

// portsOf returns the numbers of the ports of a host, for a proxy.
func (f *facts) portsOf(host string, p proxySpec) []uint32 {
	var out []uint32
	for _, s := range f.of(host, p) {
		for _, port := range s.spec.GetPorts() {
			if !slices.Contains(out, port.GetNumber()) {
				out = append(out, port.GetNumber())
			}
		}
	}
	return out
}
