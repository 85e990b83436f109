// SPDX-License-Identifier: Apache-2.0

package conformance

import "slices"

// The values of aggregateStep.Op.
const (
	opAddRegistry             = "addRegistry"
	opDeleteRegistry          = "deleteRegistry"
	opUpdateRegistry          = "updateRegistry"
	opDeleteRegistryIfCurrent = "deleteRegistryIfCurrent"
	opAddService              = "addService"
	opRemoveService           = "removeService"
	opUnregisterHandlers      = "unregisterHandlersForCluster"
)

// row17Membership: registries that were removed or replaced kept notifying, and
// left their shard in the index. Ours are unsubscribed and their shard goes.
func (x *expectation) row17Membership(e *expected, st step) {
	e.removedShards = map[string]bool{}
	if st.Aggregate != nil {
		x.member(e, *st.Aggregate)
	}
	for shard, removed := range x.removed {
		if removed {
			e.removedShards[shard] = true
		}
	}
	for _, ids := range x.members {
		for _, id := range ids {
			if spec := x.spec(id); spec.Type == typeStatic {
				e.members = append(e.members, spec)
			}
		}
	}
}

func (x *expectation) member(e *expected, st aggregateStep) {
	spec := x.spec(st.ID)
	switch st.Op {
	case opAddRegistry:
		e.membership = true
		x.addMember(spec)
	case opUpdateRegistry:
		e.membership = true
		if ids := x.members[spec.shard()]; len(ids) > 0 {
			ids[0] = st.ID
			return
		}
		x.addMember(spec)
	case opDeleteRegistry:
		e.membership = true
		x.removeMember(st.Provider+"/"+st.Cluster, 0)
	case opDeleteRegistryIfCurrent:
		e.membership = true
		x.removeMember(spec.shard(), slices.Index(x.members[spec.shard()], st.ID))
	case opAddService, opRemoveService:
		calls := row17NotifiedOnce(row17OwnCluster(e.ServiceHandlerCalls, spec.Cluster))
		e.ServiceHandlerCalls = nil
		for _, id := range x.members[spec.shard()] {
			if id == st.ID {
				e.ServiceHandlerCalls = append(e.ServiceHandlerCalls, calls...)
			}
		}
	}
}

func (x *expectation) addMember(spec registrySpec) {
	x.members[spec.shard()] = append(x.members[spec.shard()], spec.ID)
	delete(x.removed, spec.shard())
}

// removeMember removes the registry at a position among the registries of a shard, if there is one.
// The shard is removed with the last.
func (x *expectation) removeMember(shard string, position int) {
	ids := x.members[shard]
	if position < 0 || position >= len(ids) {
		return
	}
	x.members[shard] = slices.Delete(ids, position, position+1)
	x.removed[shard] = len(ids) == 1
}

func (x *expectation) spec(id string) registrySpec {
	for _, r := range x.scenario.Registries {
		if r.ID == id {
			return r
		}
	}
	return registrySpec{}
}
