// SPDX-License-Identifier: Apache-2.0

package aggregate

import (
	"maps"
	"slices"

	"github.com/pilotkit/pilotkit/registry"
)

// merge returns the services of a host, the one that GetService answers with
// first: those of Kubernetes registries, and then the others in the order of the
// registries.
func (m *merged) merge(host registry.Hostname) []*registry.Service {
	var kubernetes clusterServices
	var others []*registry.Service
	for i, reg := range m.registrations {
		services := m.sets[i].Host(host)
		switch {
		case len(services) == 0:
		case reg.kubernetes():
			kubernetes.add(services, reg.shard.Cluster, len(m.registrations)-i)
		case others == nil:
			others = slices.Clip(services) // a registry's slice is not ours to change
		default:
			others = append(others, services...)
		}
	}
	switch {
	case kubernetes.services == nil:
		return others
	case others == nil:
		return kubernetes.services
	default:
		return slices.Concat(kubernetes.services, others)
	}
}

// clusterServices are the services of one host name in Kubernetes clusters. One
// host name is one service, whichever clusters have it: those of the first
// cluster that has it, with what the others add.
type clusterServices struct {
	services []*registry.Service
	// owned are the services that are copies and may be changed; nil as long as
	// services is a registry's own slice.
	owned []bool
}

// add adds the services of a cluster, after which there may be so many more.
func (c *clusterServices) add(services []*registry.Service, cluster registry.ClusterID, more int) {
	if c.services == nil {
		c.services = services
		return
	}
	for _, s := range services {
		// Host names of Kubernetes contain the namespace, so there is one service.
		// If a host has made others, those of one namespace belong together.
		i := max(0, slices.IndexFunc(c.services, func(base *registry.Service) bool {
			return base.Attributes.Namespace == s.Attributes.Namespace
		}))
		a := additionsOf(c.services[i], s, cluster)
		if a.none() {
			continue
		}
		if c.owned == nil {
			c.services, c.owned = slices.Clone(c.services), make([]bool, len(c.services))
		}
		if !c.owned[i] {
			c.services[i], c.owned[i] = copyFor(c.services[i], more), true
		}
		a.addTo(c.services[i], cluster)
	}
}

// additions is what a service of the same host name adds in its own cluster: the
// addresses there, inside and outside, and service accounts. Everything else is
// that of the first one, as in Istio 1.30.
type additions struct{ vips, external, accounts []string }

func additionsOf(base, s *registry.Service, cluster registry.ClusterID) additions {
	a := additions{
		vips:     missing(base.ClusterVIPs, s.ClusterVIPs, cluster),
		external: missing(base.Attributes.ClusterExternalAddresses, s.Attributes.ClusterExternalAddresses, cluster),
	}
	for _, account := range s.ServiceAccounts {
		if !slices.Contains(base.ServiceAccounts, account) && !slices.Contains(a.accounts, account) {
			a.accounts = append(a.accounts, account)
		}
	}
	return a
}

// missing returns the addresses of a cluster that base has none for.
func missing(base, other map[registry.ClusterID][]string, cluster registry.ClusterID) []string {
	if len(other[cluster]) == 0 || len(base[cluster]) > 0 {
		return nil
	}
	return other[cluster]
}

func (a *additions) none() bool { return a.vips == nil && a.external == nil && a.accounts == nil }

// addTo adds to a service that may be changed.
func (a *additions) addTo(s *registry.Service, cluster registry.ClusterID) {
	if a.vips != nil {
		s.ClusterVIPs[cluster] = a.vips
	}
	if a.external != nil {
		s.Attributes.ClusterExternalAddresses[cluster] = a.external
	}
	s.ServiceAccounts = append(s.ServiceAccounts, a.accounts...)
}

// copyFor returns a copy of a service to which so many clusters may add.
func copyFor(s *registry.Service, clusters int) *registry.Service {
	out := *s
	out.ClusterVIPs = withRoom(s.ClusterVIPs, clusters)
	out.Attributes.ClusterExternalAddresses = withRoom(s.Attributes.ClusterExternalAddresses, clusters)
	out.ServiceAccounts = append(make([]string, 0, len(s.ServiceAccounts)+clusters), s.ServiceAccounts...)
	return &out
}

func withRoom(m map[registry.ClusterID][]string, more int) map[registry.ClusterID][]string {
	out := make(map[registry.ClusterID][]string, len(m)+more)
	maps.Copy(out, m)
	return out
}
