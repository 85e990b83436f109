// SPDX-License-Identifier: Apache-2.0

package aggregate

import (
	"maps"
	"slices"

	"github.com/pilotkit/pilotkit/registry"
)

// merge returns the services of a host: first the services of Kubernetes registries, then the
// others in the order of the registries. GetService returns the first one.
func (m *merged) merge(host registry.Hostname) []*registry.Service {
	var h hostServices
	for i, reg := range m.registrations {
		h.add(reg, m.sets[i].Host(host), len(m.registrations)-i)
	}
	return h.all()
}

// mergeAll yields each host, in order, with the result of merge. It scans the sorted list of each
// registry once instead of looking up each host in each set.
func (m *merged) mergeAll(yield func(registry.Hostname, []*registry.Service) bool) {
	lists := make([][]*registry.Service, len(m.sets))
	for i, set := range m.sets {
		lists[i] = set.List()
	}
	for {
		host, ok := firstOf(lists)
		if !ok {
			return
		}
		var h hostServices
		for i, reg := range m.registrations {
			n := countOf(lists[i], host)
			services := lists[i][:n]
			if n > 1 || n > 0 && h.keeps(reg) { // because a list has another order, and a subslice would keep it in memory
				services = m.sets[i].Host(host)
			}
			h.add(reg, services, len(m.registrations)-i)
			lists[i] = lists[i][n:]
		}
		if !yield(host, h.all()) {
			return
		}
	}
}

// firstOf returns the first host of sorted lists, or false if all are empty.
func firstOf(lists [][]*registry.Service) (host registry.Hostname, ok bool) {
	for _, list := range lists {
		if len(list) > 0 && (!ok || list[0].Hostname < host) {
			host, ok = list[0].Hostname, true
		}
	}
	return host, ok
}

// hostServices are the services of one host name.
type hostServices struct {
	kubernetes clusterServices
	others     []*registry.Service
}

// keeps reports whether add would keep the next slice of a registry without a copy.
func (h *hostServices) keeps(reg *registration) bool {
	if reg.kubernetes() {
		return h.kubernetes.services == nil
	}
	return h.others == nil
}

// add adds the services of a registry. At most more-1 registries follow.
func (h *hostServices) add(reg *registration, services []*registry.Service, more int) {
	switch {
	case len(services) == 0:
	case reg.kubernetes():
		h.kubernetes.add(services, reg.shard.Cluster, more)
	case h.others == nil:
		h.others = slices.Clip(services) // clipped, because the slice belongs to the registry
	default:
		h.others = append(h.others, services...)
	}
}

func (h *hostServices) all() []*registry.Service {
	switch {
	case h.kubernetes.services == nil:
		return h.others
	case h.others == nil:
		return h.kubernetes.services
	default:
		return slices.Concat(h.kubernetes.services, h.others)
	}
}

// clusterServices are the services of one host name in Kubernetes clusters. A host name is one
// service in all clusters: the service of the first cluster, extended with additions from the
// others.
type clusterServices struct {
	services []*registry.Service
	// owned marks services that are copies and may be modified. It is nil as long as services is
	// the slice of a registry.
	owned []bool
}

// add adds the services of a cluster. At most more-1 clusters follow.
func (c *clusterServices) add(services []*registry.Service, cluster registry.ClusterID, more int) {
	if c.services == nil {
		c.services = services
		return
	}
	for _, s := range services {
		// Host names of Kubernetes contain the namespace, so there is one service. With custom host
		// names, services of the same namespace are merged.
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

// additions are the parts that a service adds in its own cluster: ClusterVIPs, external addresses
// and service accounts. All other fields come from the first service, as in Istio 1.30.
type additions struct{ vips, external, accounts []string }

func additionsOf(base, s *registry.Service, cluster registry.ClusterID) additions {
	a := additions{
		vips:     missing(base.ClusterVIPs, s.ClusterVIPs, cluster),
		external: missing(base.Attributes.ClusterExternalAddresses, s.Attributes.ClusterExternalAddresses, cluster),
	}
	if accounts := s.ServiceAccounts; len(accounts) == 1 && !slices.Contains(base.ServiceAccounts, accounts[0]) {
		a.accounts = accounts // the usual case
		return a
	}
	for _, account := range s.ServiceAccounts {
		if !slices.Contains(base.ServiceAccounts, account) && !slices.Contains(a.accounts, account) {
			a.accounts = append(a.accounts, account)
		}
	}
	return a
}

// missing returns the addresses of a cluster if base has no addresses for it.
func missing(base, other map[registry.ClusterID][]string, cluster registry.ClusterID) []string {
	if len(other[cluster]) == 0 || len(base[cluster]) > 0 {
		return nil
	}
	return other[cluster]
}

func (a *additions) none() bool { return a.vips == nil && a.external == nil && a.accounts == nil }

// addTo adds to a service, which must be a copy.
func (a *additions) addTo(s *registry.Service, cluster registry.ClusterID) {
	s.ClusterVIPs = with(s.ClusterVIPs, cluster, a.vips)
	s.Attributes.ClusterExternalAddresses = with(s.Attributes.ClusterExternalAddresses, cluster, a.external)
	s.ServiceAccounts = append(s.ServiceAccounts, a.accounts...)
}

// with returns m with the addresses of a cluster, or m itself if addresses is nil.
func with(m map[registry.ClusterID][]string, cluster registry.ClusterID, addresses []string) map[registry.ClusterID][]string {
	if addresses == nil {
		return m
	}
	if m == nil {
		m = map[registry.ClusterID][]string{}
	}
	m[cluster] = addresses
	return m
}

// copyFor returns a copy of a service with capacity for the additions of a number of clusters.
func copyFor(s *registry.Service, clusters int) *registry.Service {
	out := *s
	out.ClusterVIPs = withRoom(s.ClusterVIPs, clusters)
	out.Attributes.ClusterExternalAddresses = withRoom(s.Attributes.ClusterExternalAddresses, clusters)
	out.ServiceAccounts = append(make([]string, 0, len(s.ServiceAccounts)+clusters), s.ServiceAccounts...)
	return &out
}

// withRoom returns a copy of m with capacity for more entries. It returns nil for an empty map,
// because most services with an empty map get no additions.
func withRoom(m map[registry.ClusterID][]string, more int) map[registry.ClusterID][]string {
	if len(m) == 0 {
		return nil
	}
	out := make(map[registry.ClusterID][]string, len(m)+more)
	maps.Copy(out, m)
	return out
}
