// SPDX-License-Identifier: Apache-2.0

package aggregate

import (
	"maps"
	"slices"

	"github.com/pilotkit/pilotkit/registry"
)

// merge appends to group the services of a host, sorted, and returns also the one
// that GetService answers with. cursors are at or before the host.
func (m *merged) merge(host registry.Hostname, cursors []cursor, group []*registry.Service) (all []*registry.Service, winner *registry.Service) {
	var kubernetes clusterServices
	for i, reg := range m.registrations {
		services := cursors[i].take(host)
		switch {
		case len(services) == 0:
		case reg.kubernetes:
			kubernetes.add(byPrecedence(services), reg.cluster)
		default:
			group = append(group, services...)
			if winner == nil {
				winner = reg.choose(host, services)
			}
		}
	}
	if len(kubernetes.services) > 0 {
		winner = kubernetes.services[0]
		group = slices.Insert(group, 0, kubernetes.services...)
	}
	if len(group) > 1 {
		slices.SortStableFunc(group, registry.CompareServices)
	}
	return group, winner
}

// clusterServices are the services of one host name in Kubernetes clusters. One
// host name is one service, whichever clusters have it: those of the first
// cluster that has it, with what the others add.
type clusterServices struct {
	services []*registry.Service
	// owned are the services that are copies and may be changed.
	owned []bool
}

func (c *clusterServices) add(services []*registry.Service, cluster registry.ClusterID) {
	if len(c.services) == 0 {
		c.services, c.owned = slices.Clone(services), make([]bool, len(services))
		return
	}
	for _, s := range services {
		// Host names of Kubernetes contain the namespace, so there is one service.
		// If a host has made others, those of one namespace belong together.
		i := max(0, slices.IndexFunc(c.services, func(base *registry.Service) bool {
			return base.Attributes.Namespace == s.Attributes.Namespace
		}))
		c.services[i], c.owned[i] = mergeService(c.services[i], c.owned[i], s, cluster)
	}
}

// choose returns which of several services of a host is the registry's answer:
// one of the very services that it lists.
func (r *registration) choose(host registry.Hostname, services []*registry.Service) *registry.Service {
	if len(services) == 1 {
		return services[0]
	}
	if answer := r.instance.GetService(host); answer != nil {
		for _, s := range services {
			if s == answer || keyOfService(s) == keyOfService(answer) {
				return s
			}
		}
	}
	// The registry has changed since; the next read will see that.
	return byPrecedence(services)[0]
}

func byPrecedence(services []*registry.Service) []*registry.Service {
	if len(services) == 1 {
		return services
	}
	return slices.SortedStableFunc(slices.Values(services), registry.ComparePrecedence)
}

// mergeService returns base with what a service of the same host name adds in its
// own cluster: the addresses there, inside and outside, and service accounts.
// Everything else is that of base, as in Istio 1.30. owned says that base is a
// copy already, that may be changed; the result is one unless there was nothing
// to add.
func mergeService(base *registry.Service, owned bool, s *registry.Service, cluster registry.ClusterID) (*registry.Service, bool) {
	vips := missing(base.ClusterVIPs, s.ClusterVIPs, cluster)
	external := missing(base.Attributes.ClusterExternalAddresses, s.Attributes.ClusterExternalAddresses, cluster)
	var accounts []string
	for _, a := range s.ServiceAccounts {
		if !slices.Contains(base.ServiceAccounts, a) && !slices.Contains(accounts, a) {
			accounts = append(accounts, a)
		}
	}
	if vips == nil && external == nil && accounts == nil {
		return base, owned
	}
	if !owned {
		c := *base
		c.ClusterVIPs = maps.Clone(base.ClusterVIPs)
		c.Attributes.ClusterExternalAddresses = maps.Clone(base.Attributes.ClusterExternalAddresses)
		c.ServiceAccounts = slices.Clip(base.ServiceAccounts)
		base = &c
	}
	base.ClusterVIPs = added(base.ClusterVIPs, cluster, vips)
	base.Attributes.ClusterExternalAddresses = added(base.Attributes.ClusterExternalAddresses, cluster, external)
	base.ServiceAccounts = append(base.ServiceAccounts, accounts...)
	return base, true
}

// missing returns the addresses of a cluster that base has none for.
func missing(base, other map[registry.ClusterID][]string, cluster registry.ClusterID) []string {
	if len(other[cluster]) == 0 || len(base[cluster]) > 0 {
		return nil
	}
	return other[cluster]
}

func added(m map[registry.ClusterID][]string, cluster registry.ClusterID, addresses []string) map[registry.ClusterID][]string {
	if addresses == nil {
		return m
	}
	if m == nil {
		m = map[registry.ClusterID][]string{}
	}
	m[cluster] = addresses
	return m
}
