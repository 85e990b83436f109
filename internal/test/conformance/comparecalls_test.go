// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"maps"
	"slices"
	"strings"

	"github.com/pilotkit/pilotkit/registry"
)

// pushes compares which services got an EDSUpdate that changed the index, and the
// strongest push of each. Calls that appeared in some runs only may be there.
func (c *comparison) pushes() {
	got := pushesOf(c.want.gotBefore, c.got.Calls, normaliseReplayed, true)
	for _, k := range keysOf(c.want.pushes.strongest, c.want.all.strongest, got.strongest) {
		allowed := []string{c.want.pushes.strongest[k], c.want.all.strongest[k]}
		if c.want.twins(k) {
			allowed = append(allowed, c.want.pushOfTwins(k, allowed[0]))
		}
		if c.want.free[k] || c.removed(k) || slices.Contains(allowed, got.strongest[k]) {
			continue
		}
		c.report("pushes", "%s: got %s, want %s", k, pushName(got.strongest[k]), pushName(allowed[0]))
	}
	for _, r := range got.redundant {
		if !c.want.resync {
			c.report("pushes", "%s: an EDSUpdate of %d endpoints that changes nothing (row 7)", key{r.Hostname, r.Namespace}, len(r.Endpoints))
		}
	}
}

// pushOfTwins returns the alternatives to the recorded push of a service with twins: a change among
// twins was recorded as NoPush; and because twins differ from one another, any update was recorded
// as IncrementalPush, although one that only adds endpoints invisible to proxies needs no push.
func (e *expected) pushOfTwins(k key, recorded string) string {
	switch {
	case recorded == noPush:
		return incrementalPush
	case recorded == incrementalPush && e.onlyHidden(k):
		return noPush
	default:
		return recorded
	}
}

// onlyHidden reports whether all that the step did to the endpoints of a service
// was to add unhealthy ones that are not to be sent.
func (e *expected) onlyHidden(k key) bool {
	for shard, after := range e.all.after[k] {
		kept := slices.DeleteFunc(slices.Clone(after), func(ep endpoint) bool {
			return ep.HealthStatus == registry.UnHealthy.String() && !ep.SendUnhealthyEndpoints &&
				!containsEndpoint(e.before[k][shard], ep)
		})
		if !sameEndpoints(e.before[k][shard], kept) {
			return false
		}
	}
	return len(e.before[k]) == len(e.all.after[k])
}

func containsEndpoint(list []endpoint, e endpoint) bool {
	return slices.ContainsFunc(list, func(f endpoint) bool { return f.text() == e.text() })
}

// twins reports whether endpoints of the service hid one another from the recorded push decision,
// before or after the step: endpoints with equal namespace, workload name, first address and port
// name (Istio 1.30's endpoint key, which is too weak).
func (e *expected) twins(k key) bool {
	type weakKey struct{ namespace, workload, address, port string }
	for _, index := range []indexState{e.before, e.all.after} {
		for _, endpoints := range index[k] {
			seen := map[weakKey]bool{}
			for _, ep := range endpoints {
				w := weakKey{ep.Namespace, ep.WorkloadName, firstAddress(ep), ep.ServicePortName}
				if seen[w] {
					return true
				}
				seen[w] = true
			}
		}
	}
	return false
}

func pushName(p string) string {
	if p == "" {
		return "no change"
	}
	return p
}

// removed reports whether the service had endpoints of a removed registry.
func (c *comparison) removed(k key) bool {
	for shard := range c.want.removedShards {
		if len(c.want.before[k][shard]) > 0 || len(c.want.all.after[k][shard]) > 0 {
			return true
		}
	}
	return false
}

// keysOf returns the keys of maps, sorted.
func keysOf[V any](all ...map[key]V) []key {
	set := map[key]bool{}
	for _, m := range all {
		for k := range m {
			set[k] = true
		}
	}
	return slices.SortedFunc(maps.Keys(set), func(a, b key) int { return strings.Compare(a.String(), b.String()) })
}

// order checks a property that is not in the recordings, where calls have no order: one registry
// reports a document in the order SvcUpdate, EDSUpdate, ConfigUpdate, ProxyUpdate
// (xdsupdate.XDSUpdater).
func (c *comparison) order() {
	if c.want.severalUpdaters {
		return
	}
	rank := map[string]int{callSvcUpdate: 0, callEDSUpdate: 1, callConfigUpdate: 2, callProxyUpdate: 3}
	for i, curr := range c.got.Calls {
		if i == 0 || curr.Doc != c.got.Calls[i-1].Doc {
			continue
		}
		if prev := c.got.Calls[i-1]; rank[curr.Call] < rank[prev.Call] {
			c.report("order", "%s after %s", curr.Call, prev.Call)
		}
	}
}

// serviceUpdates compares the services to be pushed with reason service: exactly the recorded ones,
// and the ones that row 13 allows.
func (c *comparison) serviceUpdates() {
	want := configs(c.want.rec.Calls, reasonService, false)
	optional := configs(c.want.rec.Calls, reasonService, true)
	got := configs(c.got.Calls, reasonService, true)
	for _, k := range sortedKeys(union(want, optional, got)) {
		if want[k] && !got[k] {
			c.report("ConfigUpdate", "%s with reason service is missing", k)
		}
		if got[k] && !optional[k] && !c.want.retimed[k] {
			c.report("ConfigUpdate", "%s with reason service, want none", k)
		}
	}
}

// endpointUpdates compares ConfigUpdates for the endpoints of DNS services: those with changed
// endpoints (row 4: the last endpoint's removal is a change, too). A service that was pushed for
// its definition may have it merged. If a host has definitions of both kinds, the result depends on
// the changed endpoints, and the recording decides which pushes are required.
func (c *comparison) endpointUpdates() {
	service := configs(c.got.Calls, reasonService, true)
	recorded := configs(c.want.rec.Calls, reasonEndpoint, true)
	changed, optional := map[string]bool{}, map[string]bool{}
	for k := range c.want.pushes.strongest {
		all, some := c.want.dns[k]
		if some && !c.want.free[k] {
			optional[serviceConfig(k)] = true
			changed[serviceConfig(k)] = all || recorded[serviceConfig(k)]
		}
	}
	got := configs(c.got.Calls, "", true)
	for _, k := range sortedKeys(union(changed, got)) {
		if changed[k] && !got[k] {
			c.report("ConfigUpdate", "%s is missing: the endpoints of the DNS service changed", k)
		}
		if got[k] && !optional[k] && !service[k] && !c.freeConfig(k) {
			c.report("ConfigUpdate", "%s, want none: nothing changed", k)
		}
	}
	for _, call := range c.got.Calls {
		if call.Call == callConfigUpdate && (call.Forced || len(call.ConfigsUpdated) == 0) {
			c.report("ConfigUpdate", "forced, or without keys: %+v", call)
		}
	}
}

func (c *comparison) freeConfig(config string) bool {
	for k := range c.want.free {
		if serviceConfig(k) == config {
			return true
		}
	}
	return false
}

func union(sets ...map[string]bool) map[string]bool {
	out := map[string]bool{}
	for _, s := range sets {
		maps.Copy(out, s)
	}
	return out
}

// svcUpdates compares SvcUpdates. Deletions remove keys of the index: they must be
// those recorded. Additions and updates only accompany a ConfigUpdate: those
// recorded must be there; more only for services that are pushed.
func (c *comparison) svcUpdates() {
	want, wantDeleted := svcUpdatesOf(c.want.rec.Calls)
	got, gotDeleted := svcUpdatesOf(c.got.Calls)
	pushed := configs(c.got.Calls, reasonService, true)
	for _, k := range keysOf(want, got) {
		switch {
		case want[k] && !got[k] && !gotDeleted[k]:
			c.report("SvcUpdate", "%s is missing", k)
		case got[k] && !pushed[serviceConfig(k)]:
			c.report("SvcUpdate", "%s without ConfigUpdate", k)
		}
	}
	for _, k := range keysOf(wantDeleted, gotDeleted) {
		if wantDeleted[k] != gotDeleted[k] {
			c.report("SvcUpdate", "%s deleted: got %t, want %t", k, gotDeleted[k], wantDeleted[k])
		}
	}
}

// svcUpdatesOf returns the services that were added or updated, and those deleted.
func svcUpdatesOf(calls []call) (updated, deleted map[key]bool) {
	updated, deleted = map[key]bool{}, map[key]bool{}
	for _, c := range calls {
		switch {
		case c.Call != callSvcUpdate:
		case c.Event == eventDelete:
			deleted[key{c.Hostname, c.Namespace}] = true
		default:
			updated[key{c.Hostname, c.Namespace}] = true
		}
	}
	return updated, deleted
}

// proxyUpdates compares the set of proxies to be pushed.
func (c *comparison) proxyUpdates() {
	got := map[string]bool{}
	for _, call := range c.got.Calls {
		if call.Call == callProxyUpdate {
			got[proxyName(call.Cluster, call.IP)] = true
		}
	}
	for _, k := range sortedKeys(union(c.want.proxyUpdates, got)) {
		required, allowed := c.want.proxyUpdates[k]
		if required && !got[k] {
			c.report("ProxyUpdate", "%s is missing", k)
		}
		if got[k] && !allowed {
			c.report("ProxyUpdate", "%s, want none", k)
		}
	}
	for _, group := range c.want.proxyGroups {
		if !slices.ContainsFunc(group, func(k string) bool { return got[k] }) {
			c.report("ProxyUpdate", "none of %v", group)
		}
	}
}
