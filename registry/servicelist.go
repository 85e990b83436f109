// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"slices"
	"sort"
	"strings"

	"github.com/pilotkit/pilotkit/internal/pmap"
)

// A ServiceSet finds services by host name. The sorted list of all services is built on demand. If
// there is an earlier list, the new one is built from it: it looks up the hosts that were set
// since, and copies the services between them. Without one, all services are sorted. Therefore a
// change costs O(log n), and a list after few changes a copy of n pointers.

// listing is the list of all services of a set.
type listing struct {
	set      *ServiceSet
	services []*Service
}

// List returns all services in the order of CompareServices. All calls return the same slice, which
// the first call builds; it is shared and read-only.
func (s *ServiceSet) List() []*Service {
	if s == nil {
		return nil
	}
	for {
		l := s.listing.Load()
		if l != nil && l.set == s {
			return l.services
		}
		next := &listing{set: s}
		if l == nil {
			next.services = s.sorted()
		} else {
			next.services = s.listSince(l)
		}
		// If another goroutine was faster, use its list.
		s.listing.CompareAndSwap(l, next)
	}
}

// sorted sorts the hosts, and then the services of each host, because most hosts have one service.
func (s *ServiceSet) sorted() []*Service {
	hosts, count := make([]*pmap.Entry[Hostname, []*Service], 0, s.hosts.Len()), 0
	s.hosts.Entries(func(e *pmap.Entry[Hostname, []*Service]) bool {
		hosts = append(hosts, e)
		count += len(e.Value)
		return true
	})
	slices.SortFunc(hosts, func(a, b *pmap.Entry[Hostname, []*Service]) int {
		return strings.Compare(string(a.Key), string(b.Key))
	})
	out := make([]*Service, 0, count)
	for _, e := range hosts {
		out = appendSorted(out, e.Value)
	}
	return out
}

func appendSorted(list, services []*Service) []*Service {
	from := len(list)
	list = append(list, services...)
	if len(services) > 1 {
		slices.SortStableFunc(list[from:], CompareServices)
	}
	return list
}

// listSince builds the list from that of an earlier set.
func (s *ServiceSet) listSince(l *listing) []*Service {
	hosts := slices.AppendSeq(make([]Hostname, 0, s.unlisted), s.ChangedSince(l.set))
	slices.Sort(hosts)
	out, rest := make([]*Service, 0, len(l.services)+len(hosts)), l.services
	for _, host := range hosts {
		n := sort.Search(len(rest), func(i int) bool { return rest[i].Hostname >= host })
		out, rest = append(out, rest[:n]...), rest[n:]
		rest = rest[len(l.set.Host(host)):]
		out = appendSorted(out, s.Host(host))
	}
	return append(out, rest...)
}
