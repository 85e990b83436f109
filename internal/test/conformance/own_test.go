// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pilotkit/pilotkit/internal/test/corpus"
)

// handWritten holds hand-written scenarios, for rules without an example in the recordings. They
// must pass.
const handWritten = "testdata"

func TestHandWritten(t *testing.T) {
	names, err := corpus.Names(handWritten)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			differences, err := replay(t, filepath.Join(handWritten, filepath.FromSlash(name)), nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range differences {
				t.Error(d)
			}
		})
	}
}

// TestLinkedCorpus: the directory of a corpus may be a link.
func TestLinkedCorpus(t *testing.T) {
	target, err := filepath.Abs(handWritten)
	if err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "corpus")
	if err := os.Symlink(target, link); err != nil {
		t.Skip(err) // not every system lets everybody make links
	}
	want, err := corpus.Names(handWritten)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := corpus.Names(link); err != nil || !slices.Equal(got, want) {
		t.Errorf("corpus.Names through a link: %d names, %v; want %d", len(got), err, len(want))
	}
}

// TestTables writes a recording with tables, as large files are, and reads the
// same from it.
func TestTables(t *testing.T) {
	const name = "mixed/vm-migration"
	path := filepath.Join(ownDirectory, filepath.FromSlash(name)) + goldenSuffix
	want, err := loadGolden(path)
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var root map[string]any
	if err := json.Unmarshal(data, &root); err != nil {
		t.Fatal(err)
	}
	moved := 0
	for field, table := range map[string]string{
		"endpoints": "endpointTable", "endpoint": "endpointTable", "services": "serviceTable", "targets": "targetTable",
	} {
		list, _ := root[table].([]any)
		steps := root["steps"]
		intern(steps, field, &list)
		root[table] = list
		moved += len(list)
	}
	if moved < 5 {
		t.Fatalf("only %d table entries", moved)
	}
	file := filepath.Join(t.TempDir(), "tables.json")
	if data, err = json.Marshal(root); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := loadGolden(file)
	if err != nil {
		t.Fatal(err)
	}
	if got.unknown != nil {
		t.Error(got.unknown)
	}
	if diff := cmp.Diff(want.Steps, got.Steps); diff != "" {
		t.Errorf("with tables (-want +got):\n%s", diff)
	}
}

// intern moves the objects under a field to a table and leaves positions.
func intern(v any, field string, table *[]any) {
	move := func(o any) any {
		if _, ok := o.(map[string]any); !ok {
			return o
		}
		*table = append(*table, o)
		return len(*table) - 1
	}
	switch v := v.(type) {
	case []any:
		for _, x := range v {
			intern(x, field, table)
		}
	case map[string]any:
		for k, x := range v {
			list, isList := x.([]any)
			switch {
			case k == field && isList:
				for i := range list {
					list[i] = move(list[i])
				}
			case k == field:
				v[k] = move(x)
			default:
				intern(x, field, table)
			}
		}
	}
}

// TestPositionOutsideTable: a position that the table does not have is an error.
func TestPositionOutsideTable(t *testing.T) {
	_, err := resolveTables([]byte(`{"endpointTable":[{}],"steps":[{"calls":[{"endpoints":[1]}]}]}`))
	if err == nil {
		t.Error("resolveTables took position 1 in a table of 1")
	}
}
