// SPDX-License-Identifier: Apache-2.0

package memory_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/memory"
)

// TestMirror: the objects keep the versions of another store, and a change of the version alone is
// a change.
func TestMirror(t *testing.T) {
	s := memory.Make(testSchemas(), memory.Options{Mirror: true})
	cache := memory.NewController(s)
	var got []configstore.Change
	cache.Subscribe([]configstore.GroupVersionKind{widget()}, func(changes []configstore.Change) {
		got = append(got, changes...)
	})
	c := object(widget(), "default", "foo", "1")
	c.ResourceVersion, c.Generation = "900", 3
	if revision := create(t, s, c); revision != "900" {
		t.Errorf("Create = %q, want the given version", revision)
	}
	create(t, s, object(widget(), "default", "other", "1"))
	cache.Drain()
	update(t, s, c)
	c.ResourceVersion = "905"
	if revision := update(t, s, c); revision != "905" {
		t.Errorf("Update = %q, want the given version", revision)
	}
	c.ResourceVersion, c.Generation = "907", 4
	if _, err := s.Apply(configstore.Mutation{Op: configstore.OpUpsert, Config: c}); err != nil {
		t.Fatal(err)
	}
	cache.Drain()
	if got := s.Get(widget(), "foo", "default"); got.ResourceVersion != "907" || got.Generation != 4 {
		t.Errorf("stored version %q, generation %d", got.ResourceVersion, got.Generation)
	}
	if got := changeVersions(got); got != "1:add 900, 2:add , 3:update 905, 4:update 907" {
		t.Errorf("the changes are %s", got)
	}
	stale := "905"
	if err := s.Delete(widget(), "foo", "default", &stale); !errors.Is(err, configstore.ErrConflict) {
		t.Errorf("Delete of an older version = %v, want ErrConflict", err)
	}
}

func changeVersions(changes []configstore.Change) string {
	out := make([]string, len(changes))
	for i, c := range changes {
		out[i] = fmt.Sprintf("%d:%s %s", c.Revision, c.Event, c.Curr.ResourceVersion)
	}
	return strings.Join(out, ", ")
}
