// SPDX-License-Identifier: Apache-2.0

package xdsupdate_test

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pilotkit/pilotkit/internal/test/tier"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// model is the index by its documentation: complete lists, maps, everything recomputed.
type model map[xdsupdate.ConfigKey]*modelService

type modelService struct {
	// shards have endpoints; known are those that have, or had before a list
	// became empty.
	shards   map[xdsupdate.ShardKey][]*registry.Endpoint
	known    map[xdsupdate.ShardKey]bool
	accounts map[string]bool
	// mutual: there is, or was, an endpoint that takes mutual TLS.
	mutual bool
}

func (m model) update(shard xdsupdate.ShardKey, key xdsupdate.ConfigKey, list []*registry.Endpoint) xdsupdate.PushType {
	s := m[key]
	if len(list) == 0 {
		if s != nil {
			delete(s.shards, shard)
		}
		return incremental
	}
	push := no
	if s == nil {
		s = &modelService{
			shards: map[xdsupdate.ShardKey][]*registry.Endpoint{}, known: map[xdsupdate.ShardKey]bool{},
		}
		m[key] = s
		push = full
	}
	if before := s.shards[shard]; push == no && (len(before) == 0 || seen(before, list)) {
		push = incremental
	}
	s.shards[shard], s.known[shard] = list, true
	s.mutual = s.mutual || slices.ContainsFunc(list, func(e *registry.Endpoint) bool { return e.Attributes().TLSMode == "istio" })
	if now := s.union(); !maps.Equal(now, s.accounts) {
		s.accounts, push = now, full
	}
	return push
}

func (m model) forget(shard xdsupdate.ShardKey, key xdsupdate.ConfigKey) {
	s := m[key]
	if s == nil {
		return
	}
	known := s.known[shard]
	delete(s.shards, shard)
	delete(s.known, shard)
	if len(s.shards) == 0 {
		delete(m, key)
	} else if known {
		s.accounts = s.union()
	}
}

func (s *modelService) union() map[string]bool {
	out := map[string]bool{}
	for _, list := range s.shards {
		for _, e := range list {
			if account := e.Attributes().ServiceAccount; account != "" {
				out[account] = true
			}
		}
	}
	return out
}

// seen reports whether proxies see a difference between two lists.
func seen(before, after []*registry.Endpoint) bool {
	type key struct {
		namespace, name, address, network, portName string
		servicePort, endpointPort                   uint32
	}
	group := func(list []*registry.Endpoint) map[key][]*registry.Endpoint {
		out := map[key][]*registry.Endpoint{}
		for _, e := range list {
			a := e.Attributes()
			k := key{a.Namespace, e.WorkloadName, e.Address(), a.Network, e.ServicePortName, e.ServicePort, e.EndpointPort}
			out[k] = append(out[k], e)
		}
		return out
	}
	a, b := group(before), group(after)
	for key := range a {
		if !sameMembers(a[key], b[key]) {
			return true
		}
	}
	for key := range b {
		for _, e := range b[key] {
			if len(a[key]) == 0 && (e.HealthStatus != registry.UnHealthy || e.Attributes().SendUnhealthyEndpoints) {
				return true
			}
		}
	}
	return false
}

func sameMembers(a, b []*registry.Endpoint) bool {
	b = slices.Clone(b)
	for _, e := range a {
		i := slices.IndexFunc(b, e.Equal)
		if i < 0 {
			return false
		}
		b = slices.Delete(b, i, i+1)
	}
	return len(b) == 0
}

// check compares everything that the index shows.
func (m model) check(t *testing.T, step int, index *xdsupdate.EndpointIndex) {
	t.Helper()
	want := slices.SortedFunc(maps.Keys(m), xdsupdate.ConfigKey.Compare)
	if diff := cmp.Diff(want, keysOf(index)); diff != "" {
		t.Fatalf("step %d: keys (-want +got):\n%s", step, diff)
	}
	for key, s := range m {
		view := index.Service(registry.Hostname(key.Name), key.Namespace)
		if accounts := slices.Sorted(maps.Keys(s.accounts)); !slices.Equal(view.ServiceAccounts(), accounts) {
			t.Fatalf("step %d: %v: accounts are %q, want %q", step, key, view.ServiceAccounts(), accounts)
		}
		if view.MutualTLS() != s.mutual {
			t.Fatalf("step %d: %v: mutual TLS is %v, want %v", step, key, view.MutualTLS(), s.mutual)
		}
		shards := 0
		for shard, endpoints := range view.Shards() {
			shards++
			if !slices.Equal(endpoints, view.Shard(shard)) {
				t.Fatalf("step %d: %v: Shards and Shard differ in %v", step, key, shard)
			}
			checkShard(t, step, shard, endpoints, s.shards[shard])
		}
		if shards != len(s.shards) {
			t.Fatalf("step %d: %v: %d shards, want %d", step, key, shards, len(s.shards))
		}
	}
}

func checkShard(t *testing.T, step int, shard xdsupdate.ShardKey, got, want []*registry.Endpoint) {
	t.Helper()
	if !slices.IsSortedFunc(got, registry.CompareEndpoints) {
		t.Fatalf("step %d: shard %v is not sorted", step, shard)
	}
	count := map[*registry.Endpoint]int{}
	for _, e := range want {
		count[e]++
	}
	for _, e := range got {
		count[e]--
	}
	for e, n := range count {
		if n != 0 {
			t.Fatalf("step %d: shard %v: %d too few of %v", step, shard, n, e)
		}
	}
}

// choices makes decisions of bytes; when they are used up, all decisions are 0.
type choices struct{ data []byte }

func (c *choices) of(n int) int {
	if len(c.data) == 0 {
		return 0
	}
	b := c.data[0]
	c.data = c.data[1:]
	return int(b) % n
}

// endpoint makes an endpoint with few possible keys and states.
func (c *choices) endpoint() *registry.Endpoint {
	e := ep(address(c.of(6)))
	switch c.of(8) {
	case 0:
		e.Addresses = append(e.Addresses, "fd00::1", "fd00::2")
	case 1:
		e.Addresses = append(e.Addresses, "fd00::2", "fd00::1")
	case 2:
		e.Addresses = []string{"10.0.0.1", "10.0.0.2"}
	case 3:
		e.Addresses = []string{"10.0.0.2", "10.0.0.1"}
	default:
	}
	e.HealthStatus = registry.HealthStatus(c.of(5))
	if c.of(4) == 0 {
		e.ServicePort = 81
	}
	a := *e.Shared
	if n := c.of(5); n > 0 {
		a.ServiceAccount = string(rune('a' + n))
	}
	a.SendUnhealthyEndpoints = c.of(4) == 0
	if c.of(12) == 1 {
		a.TLSMode = "istio"
	}
	e.Shared = &a
	return e
}

// list makes a new list of an old one: some endpoints the very same, some equal,
// some gone, some new, some twice.
func (c *choices) list(old []*registry.Endpoint) []*registry.Endpoint {
	var out []*registry.Endpoint
	if c.of(6) == 0 {
		return nil
	}
	for _, e := range old {
		switch c.of(8) {
		case 0:
		case 1, 2:
			same := *e
			out = append(out, &same)
		case 3:
			out = append(out, e, e)
		default:
			out = append(out, e)
		}
	}
	for range c.of(4) {
		out = append(out, c.endpoint())
	}
	if c.of(5) > 0 {
		slices.SortFunc(out, registry.CompareEndpoints)
	}
	return out
}

// changes makes changes of a list, and the list that they lead to.
func (c *choices) changes(old []*registry.Endpoint) ([]xdsupdate.EndpointChange, []*registry.Endpoint) {
	list := slices.Clone(old)
	var out []xdsupdate.EndpointChange
	for range c.of(5) {
		var r xdsupdate.EndpointChange
		if len(list) > 0 && c.of(3) > 0 {
			i := c.of(len(list))
			r.Old = list[i]
			list = slices.Delete(list, i, i+1)
		}
		switch c.of(5) {
		case 0:
		case 1:
			if r.Old != nil {
				same := *r.Old
				r.New = &same
			}
		case 2:
			r.New = r.Old
		default:
			r.New = c.endpoint()
		}
		if r.New != nil {
			list = append(list, r.New)
		}
		out = append(out, r)
	}
	return out, list
}

// replayModel makes a history of updates and compares after each.
func replayModel(t *testing.T, data []byte) {
	t.Helper()
	c, m, index := &choices{data: data}, model{}, xdsupdate.NewEndpointIndex()
	for step := 0; len(c.data) > 0; step++ {
		shard := shardOf(string(rune('a' + c.of(3))))
		key := xdsupdate.ServiceKey([]registry.Hostname{host, "b.example.com"}[c.of(2)], ns)
		var now []*registry.Endpoint
		if s := m[key]; s != nil {
			now = s.shards[shard]
		}
		switch what := c.of(16); {
		case what == 0:
			m.forget(shard, key)
			index.DeleteServiceShard(shard, registry.Hostname(key.Name), key.Namespace)
		case what == 1:
			removeShard(t, step, m, index, shard)
		case what < 8:
			list := c.list(now)
			want := m.update(shard, key, list)
			if got := index.UpdateServiceEndpoints(shard, registry.Hostname(key.Name), key.Namespace, slices.Clone(list)); got != want {
				t.Fatalf("step %d: list: %v, want %v", step, got, want)
			}
		default:
			changes, list := c.changes(now)
			want := no
			if len(changes) > 0 {
				want = m.update(shard, key, list)
			}
			if got := index.UpdateEndpoints(shard, registry.Hostname(key.Name), key.Namespace, changes); got != want {
				t.Fatalf("step %d: %d changes: %v, want %v", step, len(changes), got, want)
			}
		}
		m.check(t, step, index)
	}
}

// removeShard removes a shard from the services that know it.
func removeShard(t *testing.T, step int, m model, index *xdsupdate.EndpointIndex, shard xdsupdate.ShardKey) {
	t.Helper()
	var want []xdsupdate.ConfigKey
	for key, s := range maps.Clone(m) {
		if len(s.shards[shard]) > 0 {
			want = append(want, key)
		}
		if s.known[shard] {
			m.forget(shard, key)
		}
	}
	slices.SortFunc(want, xdsupdate.ConfigKey.Compare)
	if diff := cmp.Diff(want, index.RemoveShard(shard)); diff != "" {
		t.Fatalf("step %d: RemoveShard (-want +got):\n%s", step, diff)
	}
}

// TestModel replays random histories of lists, deltas and deletes.
func TestModel(t *testing.T) {
	histories := tier.Share(500)
	for seed := range uint64(histories) {
		r := rand.New(rand.NewPCG(seed, 2))
		data := make([]byte, 2000)
		for i := range data {
			data[i] = byte(r.Uint32())
		}
		if replayModel(t, data); t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func FuzzModel(f *testing.F) {
	f.Add([]byte("lists and changes of lists"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) < 4000 {
			replayModel(t, data)
		}
	})
}
