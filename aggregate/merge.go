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
	var h hostServices
	for i, reg := range m.registrations {
		h.add(reg, m.sets[i].Host(host), len(m.registrations)-i)
	}
	return h.all()
}

// mergeAll yields all hosts, in order, with what merge returns for them. It goes through
// the sorted list of each registry once, instead of looking up each host in each set.
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
			if n > 1 || n > 0 && h.keeps(reg) { // a list has another order, and is not to be kept for a part of it
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

// firstOf returns the first host of sorted lists; false if all are empty.
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

// keeps reports whether the next services of a registry are kept in their slice.
func (h *hostServices) keeps(reg *registration) bool {
	if reg.kubernetes() {
		return h.kubernetes.services == nil
	}
	return h.others == nil
}

// add adds those of a registry, after which there may be so many more.
func (h *hostServices) add(reg *registration, services []*registry.Service, more int) {
	switch {
	case len(services) == 0:
	case reg.kubernetes():
		h.kubernetes.add(services, reg.shard.Cluster, more)
	case h.others == nil:
		h.others = slices.Clip(services) // a registry's slice is not ours to change
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
	if accounts := s.ServiceAccounts; len(accounts) == 1 && !slices.Contains(base.ServiceAccounts, accounts[0]) {
		a.accounts = accounts // nearly always
		return a
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
	s.ClusterVIPs = with(s.ClusterVIPs, cluster, a.vips)
	s.Attributes.ClusterExternalAddresses = with(s.Attributes.ClusterExternalAddresses, cluster, a.external)
	s.ServiceAccounts = append(s.ServiceAccounts, a.accounts...)
}

// with returns m with the addresses of a cluster, if there are any.
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

// copyFor returns a copy of a service to which so many clusters may add.
func copyFor(s *registry.Service, clusters int) *registry.Service {
	out := *s
	out.ClusterVIPs = withRoom(s.ClusterVIPs, clusters)
	out.Attributes.ClusterExternalAddresses = withRoom(s.Attributes.ClusterExternalAddresses, clusters)
	out.ServiceAccounts = append(make([]string, 0, len(s.ServiceAccounts)+clusters), s.ServiceAccounts...)
	return &out
}

// withRoom returns a copy of m with room for more; nil if it is empty, as most are to
// which nothing is going to be added.
func withRoom(m map[registry.ClusterID][]string, more int) map[registry.ClusterID][]string {
	if len(m) == 0 {
		return nil
	}
	out := make(map[registry.ClusterID][]string, len(m)+more)
	maps.Copy(out, m)
	return out
}
