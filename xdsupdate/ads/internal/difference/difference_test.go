// SPDX-License-Identifier: Apache-2.0

package difference

import (
	"runtime"
	"strings"
	"testing"

	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/resource"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// TestDifferences: each state of clients, of each protocol and kind of client, has its own difference.
func TestDifferences(t *testing.T) {
	one := resource.NewSnapshot([]*resource.State{resource.NewMarker("type", "a", resource.Unknown)})
	two := resource.NewSnapshot([]*resource.State{resource.NewMarker("type", "b", resource.Unknown)})
	keys := []Key{{one, Traits{}}, {two, Traits{}}, {one, Traits{Delta: true}}, {two, Traits{Returning: true}}}
	var all Known
	made := map[Key]*Difference{}
	for _, key := range keys {
		if all.Get(key) != nil {
			t.Errorf("there is a difference for %+v before one was added", key.Traits)
		}
		made[key] = &Difference{}
		all.Add(key, made[key])
	}
	for _, key := range keys {
		if all.Get(key) != made[key] {
			t.Errorf("another difference than was added for %+v", key.Traits)
		}
	}
}

// TestDifferencesFromNothing: clients without resources share their difference, also after Release,
// while somebody has it.
func TestDifferencesFromNothing(t *testing.T) {
	var all Known
	made, nothing := &Difference{}, &resource.Snapshot{}
	all.Add(Key{From: nothing}, made)
	all.Release()
	if all.Get(Key{From: &resource.Snapshot{}}) != made {
		t.Error("the difference is not known any more")
	}
	if all.Get(Key{From: nothing, Traits: Traits{Delta: true}}) != nil {
		t.Error("clients of another protocol share it")
	}
	runtime.KeepAlive(made)
}

// TestWhatIsSent checks the consequence for a name, by the client's state and the present state.
func TestWhatIsSent(t *testing.T) {
	made := func(typeURL, text string) *resource.State {
		r := &resource.State{TypeURL: typeURL, Name: "a", Bytes: func() []byte { return []byte(text) }}
		r.Exists()
		return r
	}
	snapshot := func(list ...*resource.State) *resource.Snapshot { return resource.NewSnapshot(list) }
	const other = "type"
	grpc, delta := Traits{GRPC: true}, Traits{Delta: true}
	for what, tt := range map[string]struct {
		typeURL        string
		traits         Traits
		wildcard       bool
		has, there     *resource.State
		update, remove string
	}{
		"new":                              {typeURL: other, there: made(other, "1"), update: "a"},
		"another state":                    {typeURL: other, has: made(other, "1"), there: made(other, "2"), update: "a"},
		"the same":                         {typeURL: other, has: made(other, "1"), there: made(other, "1")},
		"unknown":                          {typeURL: other, has: resource.NewMarker(other, "a", resource.Unknown), there: made(other, "1"), update: "a"},
		"unknown, and none":                {typeURL: other, traits: delta, has: resource.NewMarker(other, "a", resource.Unknown), remove: "a"},
		"gone, by delta":                   {typeURL: other, traits: delta, has: made(other, "1"), remove: "a"},
		"an extension that has gone":       {typeURL: ExtensionType, traits: delta, has: made(ExtensionType, "1")},
		"an unknown extension, and none":   {typeURL: ExtensionType, traits: delta, has: resource.NewMarker(ExtensionType, "a", resource.Unknown), remove: "a"},
		"all extensions":                   {typeURL: ExtensionType, traits: delta, wildcard: true, has: made(ExtensionType, "1"), remove: "a"},
		"gone, by SotW and name":           {typeURL: other, has: made(other, "1")},
		"gone, by SotW and wildcard":       {typeURL: other, wildcard: true, has: made(other, "1"), remove: "a"},
		"a cluster that a gRPC client has": {typeURL: envoy.ClusterType, traits: grpc, has: made(envoy.ClusterType, "1")},
		"a cluster that an Envoy has":      {typeURL: envoy.ClusterType, has: made(envoy.ClusterType, "1"), remove: "a"},
		"an assignment without a cluster": {
			typeURL: envoy.LoadAssignmentType, has: made(envoy.LoadAssignmentType, "1"),
			there: resource.NewMarker(envoy.LoadAssignmentType, "a", resource.Tombstone), remove: "empty a",
		},
	} {
		from, to := &resource.Snapshot{}, &resource.Snapshot{}
		if tt.has != nil {
			from = snapshot(tt.has)
		}
		if tt.there != nil {
			to = snapshot(tt.there)
		}
		d := State[int]{Kind: Kind{tt.typeURL, tt.wildcard}, Snapshot: to}.Difference(from, tt.traits)
		update, remove := "", ""
		if d.Update != nil {
			update = d.Update.Listed[0].Name
		}
		if d.Removal != nil {
			remove = strings.Join(d.Removal.Removed, " ")
			for _, r := range d.Removal.Listed {
				remove += "empty " + r.Name
			}
		}
		if update != tt.update || remove != tt.remove {
			t.Errorf("%s: %q is sent and %q removed, want %q and %q", what, update, remove, tt.update, tt.remove)
		}
	}
}
