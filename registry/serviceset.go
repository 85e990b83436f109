// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"fmt"
	"iter"
	"slices"

	"go.uber.org/atomic"

	"github.com/pilotkit/pilotkit/internal/limit"
	"github.com/pilotkit/pilotkit/internal/pmap"
)

// ServiceSnapshotter is the optional ability of a ServiceDiscovery to return all its services as a
// snapshot that can be compared with another one. For consumers that follow a registry, such as
// package aggregate, the cost is then proportional to the change; without the ability they compare
// the lists of Services. Find it with As.
type ServiceSnapshotter interface {
	// ServiceSnapshot returns the current services: its List equals Services, its Get equals
	// GetService. It costs nothing. As long as the services do not change it returns the same
	// pointer. After a change it returns a set that was derived from the one before by With or
	// WithHosts. A later call never returns an earlier state.
	//
	// Nil, which is not the empty set, means that the registry does not have the ability after all,
	// for instance because of its options.
	ServiceSnapshot() *ServiceSet
}

// ServiceSet is a snapshot of a set of services. It is immutable; a change returns another set,
// which shares the unchanged parts. The zero value and nil are the empty set. It must not be
// copied.
type ServiceSet struct {
	hosts pmap.Map[Hostname, []*Service]
	// listing is the last list of this set or of one that it was derived from; nil if too many
	// hosts changed since.
	listing atomic.Pointer[listing]
	// unlisted is the number of hosts that were set since the listing of another set.
	unlisted int
}

// NewServiceSet returns a set of services. Services of one host name are ordered by
// ComparePrecedence.
func NewServiceSet(services ...*Service) *ServiceSet {
	hosts := make(map[Hostname][]*Service, len(services))
	for _, s := range services {
		hosts[s.Hostname] = append(hosts[s.Hostname], s)
	}
	return new(ServiceSet).WithHosts(func(yield func(Hostname, []*Service) bool) {
		for host, services := range hosts {
			slices.SortStableFunc(services, ComparePrecedence)
			if !yield(host, services) {
				return
			}
		}
	})
}

// Get returns the service that wins a host name, or nil.
func (s *ServiceSet) Get(host Hostname) *Service {
	if services := s.Host(host); len(services) > 0 {
		return services[0]
	}
	return nil
}

// Host returns the services of a host name in the order of precedence; the first one wins. The
// slice is shared and read-only.
func (s *ServiceSet) Host(host Hostname) []*Service {
	if s == nil {
		return nil
	}
	services, _ := s.hosts.Get(host)
	return services
}

// With returns a set whose services of a host name are exactly the given ones; the first wins. The
// set keeps the slice, which the caller must not modify afterwards. It costs O(log n). A service of
// another host name is a programming error and panics.
func (s *ServiceSet) With(host Hostname, services ...*Service) *ServiceSet {
	s = s.orEmpty()
	checkHost(host, services)
	next := s.successor(1)
	if len(services) == 0 {
		next.hosts = s.hosts.Delete(host)
	} else {
		next.hosts = s.hosts.Set(host, services)
	}
	return next
}

// WithHosts applies With to many distinct hosts in one pass. It is faster than calls of With, most
// of all if the set is empty.
func (s *ServiceSet) WithHosts(hosts iter.Seq2[Hostname, []*Service]) *ServiceSet {
	s = s.orEmpty()
	if s.hosts.Len() == 0 {
		return s.filled(hosts)
	}
	live, changed := s.hosts.Live(), 0
	for host, services := range hosts {
		checkHost(host, services)
		if changed++; len(services) == 0 {
			live.Delete(host)
		} else {
			live.Set(host, services)
		}
	}
	if changed == 0 {
		return s
	}
	next := s.successor(changed)
	next.hosts = live.Snapshot()
	return next
}

// filled is WithHosts for an empty set. If the hosts come in order it also builds the list, which
// would have to be sorted later.
func (s *ServiceSet) filled(hosts iter.Seq2[Hostname, []*Service]) *ServiceSet {
	var entries []*pmap.Entry[Hostname, []*Service]
	var list []*Service
	ordered := true
	for host, services := range hosts {
		checkHost(host, services)
		if len(services) == 0 {
			continue
		}
		ordered = ordered && (len(entries) == 0 || entries[len(entries)-1].Key < host)
		if ordered {
			list = appendSorted(list, services)
		}
		entries = append(entries, &pmap.Entry[Hostname, []*Service]{Key: host, Value: services})
	}
	if len(entries) == 0 {
		return s
	}
	next := &ServiceSet{hosts: pmap.FromEntries(entries)}
	if ordered {
		next.listing.Store(&listing{set: next, services: slices.Clip(list)})
	}
	return next
}

// ChangedSince yields the host names whose services, or their order of precedence, differ from an
// older set, each once, in unspecified order. It costs O(log n) for each host name that was set
// since then. For a set that this one was not derived from, it costs O(n).
func (s *ServiceSet) ChangedSince(old *ServiceSet) iter.Seq[Hostname] {
	return func(yield func(Hostname) bool) {
		if s == old {
			return
		}
		pmap.Changes(old.orEmpty().hosts, s.orEmpty().hosts, func(before, after *pmap.Entry[Hostname, []*Service]) bool {
			switch {
			case before == nil:
				return yield(after.Key)
			case after != nil && slices.Equal(before.Value, after.Value):
				return true
			default:
				return yield(before.Key)
			}
		})
	}
}

func (s *ServiceSet) orEmpty() *ServiceSet {
	if s == nil {
		return &ServiceSet{}
	}
	return s
}

// successor returns a copy for setting the given number of hosts.
func (s *ServiceSet) successor(changes int) *ServiceSet {
	next := &ServiceSet{hosts: s.hosts, unlisted: s.unlisted + changes}
	l := s.listing.Load()
	if l != nil && l.set == s {
		next.unlisted = changes
	}
	// An old listing is dropped, because it keeps the replaced services alive.
	if next.unlisted <= s.hosts.Len()/maxUnlisted.Get()+1 {
		next.listing.Store(l)
	}
	return next
}

// maxUnlisted determines when the last list of a set is dropped: when more than one in maxUnlisted
// hosts has been set since.
const maxUnlisted limit.Size = 4

func checkHost(host Hostname, services []*Service) {
	for _, s := range services {
		if s.Hostname != host {
			panic(fmt.Sprintf("registry: a service of host name %q is set for %q", s.Hostname, host))
		}
	}
}
