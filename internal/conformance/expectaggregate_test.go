// SPDX-License-Identifier: Apache-2.0

package conformance

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
	for shard := range x.removed {
		e.removedShards[shard] = true
	}
	for _, id := range x.members {
		if spec := x.spec(id); spec.Type == typeStatic {
			e.members = append(e.members, spec)
		}
	}
}

func (x *expectation) member(e *expected, st aggregateStep) {
	switch st.Op {
	case opAddRegistry, opUpdateRegistry:
		e.membership = true
		spec := x.spec(st.ID)
		if _, taken := x.members[spec.shard()]; !taken || st.Op == opUpdateRegistry {
			x.members[spec.shard()] = st.ID
			delete(x.removed, spec.shard())
		}
	case opDeleteRegistry:
		e.membership = true
		x.removeMember(st.Provider + "/" + st.Cluster)
	case opDeleteRegistryIfCurrent:
		e.membership = true
		if spec := x.spec(st.ID); x.members[spec.shard()] == st.ID {
			x.removeMember(spec.shard())
		}
	case opAddService, opRemoveService:
		spec := x.spec(st.ID)
		if x.members[spec.shard()] != st.ID {
			e.ServiceHandlerCalls = nil
			return
		}
		e.ServiceHandlerCalls = row17ToldOnce(row17OwnCluster(e.ServiceHandlerCalls, spec.Cluster))
	}
}

func (x *expectation) removeMember(shard string) {
	if _, ok := x.members[shard]; !ok {
		return
	}
	delete(x.members, shard)
	x.removed[shard] = true
}

func (x *expectation) spec(id string) registrySpec {
	for _, r := range x.scenario.Registries {
		if r.ID == id {
			return r
		}
	}
	return registrySpec{}
}
