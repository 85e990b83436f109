// SPDX-License-Identifier: Apache-2.0

package xdsupdate

import (
	"slices"

	"github.com/pilotkit/pilotkit/registry"
)

// service is the data of the index about a service, in addition to the view. The lock of the index
// guards it.
type service struct {
	// counts are the accounts of the present endpoints. The accounts of the view are the announced
	// ones, and may include others.
	counts accountCounts
	// stale: counts may differ from the accounts of the view.
	stale bool
}

// tlsModeIstio is the TLS mode of endpoints that take mutual TLS of the mesh.
const tlsModeIstio = "istio"

// update replaces a shard's endpoints, or some of them.
type update struct {
	list    []*registry.Endpoint
	changes []EndpointChange
	delta   bool
}

// on returns the effect of the update on a shard's endpoints. The first delta of an owner replaces
// the endpoints of its predecessor and is the complete list.
func (u update) on(before sequence, first bool) change {
	switch {
	case u.delta && first:
		return changeList(before, changeSome(sequence{}, u.changes).after.Slice())
	case u.delta:
		return changeSome(before, u.changes)
	default:
		return changeList(before, u.list)
	}
}

// writeLocked makes an update of a shard's endpoints for a service.
func (x *EndpointIndex) writeLocked(key ShardKey, by *right, name serviceName, u update) PushType {
	shard := x.shardLocked(key)
	if u.delta && len(u.changes) == 0 {
		return NoPush
	}
	u.list = withoutNil(u.list)
	view := x.find(name)
	next := shardEndpoints{shard: shard, by: by}
	i, found := view.find(key)
	var before shardEndpoints
	if found {
		before, view.shards[i].by = *view.shards[i], by
	}
	c := u.on(before.endpoints, by.succeeds(before.by))
	if view == nil && c.after.Len() == 0 {
		return IncrementalPush // nothing came, or it has gone again
	}
	s := view.serviceOrNew()
	s.count(&c)
	push, accounts := s.judge(view, &c)
	if !c.same || push == FullPush {
		next.endpoints = c.after
		x.replaceLocked(view, name, s, i, found, &next, accounts, &c)
	}
	return push
}

func (e *ServiceEndpoints) serviceOrNew() *service {
	if e == nil {
		return &service{}
	}
	return e.service
}

// count counts the accounts of added and removed endpoints. Added endpoints are counted first,
// because a change may remove an endpoint that it has added, and no count may become negative.
func (s *service) count(c *change) {
	for _, e := range c.added {
		s.stale = s.counts.add(e.Attributes().ServiceAccount, 1) || s.stale
	}
	for _, e := range c.removed {
		s.stale = s.counts.add(e.Attributes().ServiceAccount, -1) || s.stale
	}
}

// isForeign reports whether the workload of an endpoint is in another namespace than the service.
func (n serviceName) isForeign(e *registry.Endpoint) bool {
	namespace := e.Attributes().Namespace
	return namespace != "" && namespace != n.namespace
}

// takingMutualTLS counts endpoints that take mutual TLS of the mesh.
func takingMutualTLS(endpoints []*registry.Endpoint) int {
	n := 0
	for _, e := range endpoints {
		if e.Attributes().TLSMode == tlsModeIstio {
			n++
		}
	}
	return n
}

// judge returns the outcome of a change and the accounts to announce. An
// empty list leaves the accounts alone, so that a service whose only workload
// comes and goes is not pushed in full each time.
func (s *service) judge(view *ServiceEndpoints, c *change) (PushType, []string) {
	accounts := view.ServiceAccounts()
	if c.after.Len() == 0 {
		return IncrementalPush, accounts
	}
	push := NoPush
	if c.pushes() {
		push = IncrementalPush
	}
	if s.stale {
		s.stale = false
		if !s.counts.is(accounts) {
			accounts, push = s.counts.sorted(), FullPush
		}
	}
	if view == nil {
		push = FullPush
	}
	return push, accounts
}

// replaceLocked shows the view with a shard's new state, at or in place of shard i of the one
// before. A service or shard is created by its first endpoint.
func (x *EndpointIndex) replaceLocked(
	view *ServiceEndpoints, name serviceName, s *service, i int, found bool, e *shardEndpoints, accounts []string, c *change,
) {
	if !found && e.endpoints.Len() == 0 {
		return
	}
	next := newView(name, s)
	next.accounts = accounts
	// If there were no such endpoints before, the removed ones were added by the same change.
	next.mutual = view.MutualTLS() || takingMutualTLS(c.added) > takingMutualTLS(c.removed)
	next.foreign = view.Foreign() || slices.ContainsFunc(c.added, name.isForeign)
	switch {
	case view == nil:
		next.shards = []*shardEndpoints{e}
	case found:
		next.shards = slices.Clone(view.shards)
		next.shards[i] = e
	default:
		next.shards = slices.Concat(view.shards[:i], []*shardEndpoints{e}, view.shards[i:])
	}
	x.views.Put(&next.entry)
}

// removeLocked removes a shard and all data about it, and the service if no shard has endpoints. It
// reports whether endpoints were removed.
func (x *EndpointIndex) removeLocked(view *ServiceEndpoints, key ShardKey) bool {
	i, found := view.find(key)
	var gone shardEndpoints
	if found {
		gone = *view.shards[i]
	}
	if gone.endpoints.Len() == view.Len() {
		x.views.Delete(view.entry.Key)
		return gone.endpoints.Len() > 0
	}
	if !found {
		return false
	}
	s := view.service
	for e := range gone.endpoints.All() {
		s.counts.add(e.Attributes().ServiceAccount, -1)
	}
	next := newView(view.entry.Key, s)
	next.shards, next.accounts, next.mutual, next.foreign = slices.Delete(slices.Clone(view.shards), i, i+1), view.accounts, view.mutual, view.foreign
	if s.stale = false; !s.counts.is(next.accounts) {
		next.accounts = s.counts.sorted()
	}
	x.views.Put(&next.entry)
	return gone.endpoints.Len() > 0
}
