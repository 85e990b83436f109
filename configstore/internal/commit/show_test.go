// SPDX-License-Identifier: Apache-2.0

package commit_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/internal/commit"
	"github.com/pilotkit/pilotkit/configstore/memory"
)

// TestShow: the store shows all objects of a batch that it accepts, and objects left out of one
// batch do not block later ones.
func TestShow(t *testing.T) {
	t.Parallel()
	b := configstore.NewSchemasBuilder()
	b.MustAdd(configstore.Schema{GroupVersionKind: limit(), Plural: "limits", Spec: &structpb.Value{}})
	store := memory.Make(b.Build(), memory.Options{SkipValidation: true})
	bad := config("bad\n", 1)
	unknown := config("unknown", 1)
	unknown.GroupVersionKind.Kind = "Other"
	of := func(op configstore.Op, c configstore.Config) configstore.Mutation {
		return configstore.Mutation{Op: op, Config: c}
	}
	for i, step := range []struct {
		batch   []configstore.Mutation
		refused []string
		shown   string
	}{
		{
			[]configstore.Mutation{of(configstore.OpCreate, config("a", 1)), of(configstore.OpCreate, bad), of(configstore.OpCreate, unknown), of(configstore.OpCreate, config("b", 1))},
			[]string{"bad\n", "unknown"},
			"a=1 b=1",
		},
		{ // The source thinks that bad is there.
			[]configstore.Mutation{of(configstore.OpUpdate, config("a", 2)), of(configstore.OpDelete, bad), of(configstore.OpUpdate, config("late", 2))},
			nil, "a=2 b=1 late=2",
		},
		{ // One that is deleted and made again, and one that comes and goes.
			[]configstore.Mutation{
				of(configstore.OpDelete, config("a", 0)), of(configstore.OpCreate, config("a", 3)), of(configstore.OpCreate, bad),
				of(configstore.OpCreate, config("brief", 3)), of(configstore.OpDelete, config("brief", 0)), of(configstore.OpDelete, config("b", 0)),
				of(configstore.OpDelete, config("b", 0)),
			},
			[]string{"bad\n"},
			"a=3 late=2",
		},
	} {
		var refused []string
		for _, r := range commit.Show(store, step.batch) {
			if r.Err == nil {
				t.Errorf("step %d: %v has no error", i, r.Object)
			}
			refused = append(refused, r.Object.Name)
		}
		shown := ""
		for _, c := range store.List(limit(), "") {
			shown += fmt.Sprintf(" %s=%v", c.Name, c.Spec.(*structpb.Value).GetNumberValue())
		}
		if diff := cmp.Diff(step.refused, refused); diff != "" || shown != " "+step.shown {
			t.Errorf("step %d: %s, shown%s, want %s", i, diff, shown, step.shown)
		}
	}
}
