// SPDX-License-Identifier: Apache-2.0

package xdsupdate

import (
	"testing"

	"google.golang.org/protobuf/types/known/structpb"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/memory"
)

// A batch with configs for two followers of a Pusher is one update, also without a registry.
func TestBatchOfTwoFollowers(t *testing.T) {
	schemas := configstore.NewSchemasBuilder()
	var kinds []configstore.GroupVersionKind
	for _, kind := range []string{"A", "B"} {
		kinds = append(kinds, configstore.GroupVersionKind{Group: "example.com", Version: "v1", Kind: kind})
		schemas.MustAdd(configstore.Schema{GroupVersionKind: kinds[len(kinds)-1], Plural: kind + "s", Spec: &structpb.Struct{}})
	}
	store := memory.NewController(memory.Make(schemas.Build()))
	p := NewPusher(func(*PushRequest) {})
	var batch []configstore.Mutation
	for _, kind := range kinds {
		FollowConfigs(p, store, []configstore.GroupVersionKind{kind}, nil)
		batch = append(batch, configstore.Mutation{Op: configstore.OpCreate, Config: configstore.Config{
			Meta: configstore.Meta{GroupVersionKind: kind, Namespace: "ns", Name: "name"}, Spec: &structpb.Struct{},
		}})
	}
	store.Drain()
	before := p.ended
	if _, err := store.Apply(batch...); err != nil {
		t.Fatal(err)
	}
	store.Drain()
	if n := p.ended - before; n != 1 {
		t.Errorf("%d updates, want 1", n)
	}
	if p.configs.Len() != 2 {
		t.Errorf("%d configs, want 2", p.configs.Len())
	}
}
