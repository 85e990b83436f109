// SPDX-License-Identifier: Apache-2.0

package xdsupdate_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

const (
	no          = xdsupdate.NoPush
	incremental = xdsupdate.IncrementalPush
	full        = xdsupdate.FullPush
)

// step is one call on the index and what it must return.
type step struct {
	cluster string
	list    []*registry.Endpoint
	// forget: DeleteServiceShard instead of an update.
	forget bool
	want   xdsupdate.PushType
	// accounts afterwards; nil is not checked.
	accounts []string
}

// TestOutcomes is the outcome table of Istio 1.30's endpoint index.
func TestOutcomes(t *testing.T) {
	unhealthy := health(registry.UnHealthy)
	tests := []struct {
		name  string
		steps []step
	}{
		{"first non-empty update", []step{{list: eps(ep("1.1.1.1")), want: full}}},
		{"empty list for an unknown service", []step{{want: incremental}, {list: eps(ep("1.1.1.1")), want: full}}},
		{"same list again", []step{{list: eps(ep("1.1.1.1")), want: full}, {list: eps(ep("1.1.1.1")), want: no}}},
		{"new endpoint", []step{
			{list: eps(ep("1.1.1.1")), want: full},
			{list: eps(ep("1.1.1.1"), ep("2.2.2.2")), want: incremental},
		}},
		{"removed endpoint", []step{
			{list: eps(ep("1.1.1.1"), ep("2.2.2.2")), want: full},
			{list: eps(ep("2.2.2.2")), want: incremental},
		}},
		{"replaced endpoint", []step{
			{list: eps(ep("1.1.1.1")), want: full},
			{list: eps(ep("2.2.2.2")), want: incremental},
		}},
		{"new unhealthy endpoint", []step{
			{list: eps(ep("1.1.1.1")), want: full},
			{list: eps(ep("1.1.1.1"), ep("2.2.2.2", unhealthy)), want: no},
			{list: eps(ep("1.1.1.1"), ep("2.2.2.2")), want: incremental},
			{list: eps(ep("1.1.1.1"), ep("2.2.2.2", unhealthy)), want: incremental},
		}},
		{"new unhealthy endpoint that proxies want to know of", []step{
			{list: eps(ep("1.1.1.1")), want: full},
			{list: eps(ep("1.1.1.1"), ep("2.2.2.2", unhealthy, sendUnhealthy())), want: incremental},
		}},
		{"new draining and terminating endpoints", []step{
			{list: eps(ep("1.1.1.1")), want: full},
			{list: eps(ep("1.1.1.1"), ep("2.2.2.2", health(registry.Draining))), want: incremental},
			{
				list: eps(ep("1.1.1.1"), ep("2.2.2.2", health(registry.Draining)), ep("3.3.3.3", health(registry.Terminating))),
				want: incremental,
			},
		}},
		{"first endpoints are unhealthy", []step{
			{list: eps(ep("1.1.1.1", unhealthy)), want: full},
			{cluster: "c2", list: eps(ep("2.2.2.2", unhealthy)), want: incremental},
		}},
		{"removed unhealthy endpoint", []step{
			{list: eps(ep("1.1.1.1"), ep("2.2.2.2", unhealthy)), want: full},
			{list: eps(ep("1.1.1.1")), want: incremental},
		}},
		{"new service account", []step{
			{list: eps(ep("1.1.1.1", account("sa1"))), want: full, accounts: []string{"sa1"}},
			{
				list: eps(ep("1.1.1.1", account("sa1")), ep("2.2.2.2", account("sa0"))), want: full,
				accounts: []string{"sa0", "sa1"},
			},
		}},
		{"new service account of an unhealthy endpoint", []step{
			{list: eps(ep("1.1.1.1", account("sa1"))), want: full},
			{list: eps(ep("1.1.1.1", account("sa1")), ep("2.2.2.2", account("sa2"), unhealthy)), want: full},
		}},
		{"last use of a service account goes", []step{
			{list: eps(ep("1.1.1.1", account("sa1")), ep("2.2.2.2", account("sa2"))), want: full},
			{list: eps(ep("1.1.1.1", account("sa1"))), want: full, accounts: []string{"sa1"}},
		}},
		{"one of two uses of a service account goes", []step{
			{list: eps(ep("1.1.1.1", account("sa1")), ep("2.2.2.2", account("sa1"))), want: full},
			{list: eps(ep("1.1.1.1", account("sa1"))), want: incremental, accounts: []string{"sa1"}},
		}},
		{"an account that another shard has", []step{
			{list: eps(ep("1.1.1.1", account("sa1"))), want: full},
			{cluster: "c2", list: eps(ep("2.2.2.2", account("sa1"))), want: incremental},
			{cluster: "c2", list: eps(ep("2.2.2.2", account("sa2"))), want: full, accounts: []string{"sa1", "sa2"}},
			{cluster: "c2", list: eps(ep("2.2.2.2", account("sa1"))), want: full, accounts: []string{"sa1"}},
		}},
		{"list becomes empty and is refilled", []step{
			{list: eps(ep("1.1.1.1", account("sa1"))), want: full},
			{want: incremental, accounts: []string{"sa1"}},
			{want: incremental, accounts: []string{"sa1"}},
			{list: eps(ep("1.1.1.1", account("sa1"))), want: incremental, accounts: []string{"sa1"}},
		}},
		{"refilled with another account", []step{
			{list: eps(ep("1.1.1.1", account("sa1"))), want: full},
			{want: incremental, accounts: []string{"sa1"}},
			{list: eps(ep("1.1.1.1", account("sa2"))), want: full, accounts: []string{"sa2"}},
		}},
		{"emptied here, updated elsewhere", []step{
			{list: eps(ep("1.1.1.1", account("sa1"))), want: full},
			{cluster: "c2", list: eps(ep("2.2.2.2", account("sa2"))), want: full},
			{want: incremental, accounts: []string{"sa1", "sa2"}},
			{cluster: "c2", list: eps(ep("2.2.2.2", account("sa2"))), want: full, accounts: []string{"sa2"}},
		}},
		{"deleted, then refilled", []step{
			{list: eps(ep("1.1.1.1")), want: full},
			{forget: true},
			{list: eps(ep("1.1.1.1")), want: full},
		}},
		{"emptied, deleted, then refilled", []step{
			{list: eps(ep("1.1.1.1")), want: full},
			{want: incremental},
			{forget: true},
			{list: eps(ep("1.1.1.1")), want: full},
		}},
		{"deleted while another shard has endpoints, then refilled", []step{
			{list: eps(ep("1.1.1.1")), want: full},
			{cluster: "c2", list: eps(ep("2.2.2.2")), want: incremental},
			{forget: true},
			{list: eps(ep("1.1.1.1")), want: incremental},
		}},
		{"equal keys in one list", []step{
			{list: eps(ep("1.1.1.1"), ep("1.1.1.1")), want: full},
			{list: eps(ep("1.1.1.1"), ep("1.1.1.1")), want: no},
			{list: eps(ep("1.1.1.1"), ep("1.1.1.1", unhealthy)), want: incremental},
			{list: eps(ep("1.1.1.1", unhealthy), ep("1.1.1.1")), want: no},
			{list: eps(ep("1.1.1.1")), want: incremental},
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, deltas := range []bool{false, true} {
				runOutcomes(t, deltas, tt.steps)
			}
		})
	}
}

// runOutcomes makes the steps as complete lists or as deltas.
func runOutcomes(t *testing.T, deltas bool, steps []step) {
	t.Helper()
	index := xdsupdate.NewEndpointIndex()
	now := map[xdsupdate.ShardKey][]*registry.Endpoint{}
	for i, s := range steps {
		shard := shardOf(s.cluster)
		if s.forget {
			index.DeleteServiceShard(shard, host, ns)
			delete(now, shard)
			continue
		}
		var got xdsupdate.PushType
		if changes := changesTo(now[shard], s.list); deltas && len(changes) > 0 {
			got = index.UpdateEndpoints(shard, host, ns, changes)
		} else {
			got = index.UpdateServiceEndpoints(shard, host, ns, s.list)
		}
		now[shard] = s.list
		if got != s.want {
			t.Errorf("deltas %v: step %d returned %v, want %v", deltas, i, got, s.want)
		}
		if got := index.Service(host, ns).ServiceAccounts(); s.accounts != nil && !slices.Equal(got, s.accounts) {
			t.Errorf("deltas %v: step %d: accounts are %v, want %v", deltas, i, got, s.accounts)
		}
		want := slices.SortedFunc(slices.Values(s.list), registry.CompareEndpoints)
		if diff := cmp.Diff(want, index.Service(host, ns).Shard(shard)); diff != "" {
			t.Errorf("deltas %v: step %d: endpoints (-want +got):\n%s", deltas, i, diff)
		}
	}
}

// changesTo returns changes that make one list of another: in place as far as
// both reach, then what is left.
func changesTo(from, to []*registry.Endpoint) []xdsupdate.EndpointChange {
	var out []xdsupdate.EndpointChange
	for i := range max(len(from), len(to)) {
		var c xdsupdate.EndpointChange
		if i < len(from) {
			c.Old = from[i]
		}
		if i < len(to) {
			c.New = to[i]
		}
		out = append(out, c)
	}
	return out
}
