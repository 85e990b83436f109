// SPDX-License-Identifier: Apache-2.0

package aggregate

import (
	"iter"
	"slices"
	"strings"

	"github.com/pilotkit/pilotkit/registry"
)

// listed is the last list of a registry that is not a registry.ServiceSnapshotter, as a set. The
// registry returns the same slice until its services change. The changed hosts of another slice are
// found by comparison.
type listed struct {
	list []*registry.Service
	set  *registry.ServiceSet
}

// snapshot returns the present services of a registry. It returns the same set until they change.
func (r *registration) snapshot() *registry.ServiceSet {
	if r.snapshotter != nil {
		if set := r.snapshotter.ServiceSnapshot(); set != nil {
			return set
		}
	}
	old, list := r.listed.Load(), r.instance.Services()
	if identical(old.list, list) {
		return old.set
	}
	next := &listed{list: list, set: old.set.WithHosts(r.hosts(old.list, list))}
	// If another goroutine stores an older list, the next call corrects that.
	r.listed.Store(next)
	return next.set
}

// identical reports whether two slices are the same one.
func identical(a, b []*registry.Service) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// hosts compares two sorted lists of services. It yields each host whose services differ, with its
// services in the second list, in the order of precedence. The services are a copy unless the first
// list is empty, because a slice of the second list would keep all of it in memory for one host.
func (r *registration) hosts(a, b []*registry.Service) iter.Seq2[registry.Hostname, []*registry.Service] {
	own := slices.Clone[[]*registry.Service]
	if len(a) == 0 {
		own = slices.Clip[[]*registry.Service]
	}
	return func(yield func(registry.Hostname, []*registry.Service) bool) {
		for len(a) > 0 || len(b) > 0 {
			if len(a) > 0 && len(b) > 0 && a[0] == b[0] && alone(a) && alone(b) {
				a, b = a[1:], b[1:]
				continue
			}
			host := first(a, b)
			before, after := countOf(a, host), countOf(b, host)
			if !slices.Equal(a[:before], b[:after]) && !yield(host, own(r.preferred(host, b[:after]))) {
				return
			}
			a, b = a[before:], b[after:]
		}
	}
}

// alone reports whether the first service of a list is the only one of its host.
func alone(list []*registry.Service) bool {
	return len(list) == 1 || list[0].Hostname != list[1].Hostname
}

// first returns the host that comes first in two sorted lists. One of them may be empty.
func first(a, b []*registry.Service) registry.Hostname {
	if len(b) == 0 || len(a) > 0 && strings.Compare(string(a[0].Hostname), string(b[0].Hostname)) < 0 {
		return a[0].Hostname
	}
	return b[0].Hostname
}

// countOf returns how many services at the beginning of a list have a host name.
func countOf(list []*registry.Service, host registry.Hostname) int {
	n := 0
	for n < len(list) && list[n].Hostname == host {
		n++
	}
	return n
}

// preferred returns the services of one host in the order of precedence, except that the service
// from the registry's own GetService comes first.
func (r *registration) preferred(host registry.Hostname, services []*registry.Service) []*registry.Service {
	if len(services) <= 1 {
		return services
	}
	answer := r.instance.GetService(host)
	services = slices.SortedStableFunc(slices.Values(services), registry.ComparePrecedence)
	if i := slices.Index(services, answer); i > 0 {
		services = slices.Insert(slices.Delete(services, i, i+1), 0, answer)
	}
	return services
}
