// SPDX-License-Identifier: Apache-2.0

package gatewayapi

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pilotkit/pilotkit/internal/test/corpus"
)

// TestWithoutEachField removes each field of each object of the scenarios, one at a time, as in objects
// that no API server has completed, with and without the Namespaces: each object is converted, and what
// follows from the complete object afterwards is as after a fresh start.
func TestWithoutEachField(t *testing.T) {
	t.Parallel()
	names, err := corpus.Names(corpusDirectory())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if strings.HasPrefix(name, "ingress/") {
			continue
		}
		s, err := loadScenario(filepath.Join(corpusDirectory(), filepath.FromSlash(name)))
		if err != nil {
			t.Fatal(err)
		}
		docs, err := documents(s.Initial)
		if err != nil {
			t.Fatal(err)
		}
		without := slices.DeleteFunc(slices.Clone(docs), func(doc map[string]any) bool { return doc["kind"] == "Namespace" })
		withoutEachField(t, name, docs)
		withoutEachField(t, name+" without Namespaces", without)
	}
}

func withoutEachField(t *testing.T, name string, docs []map[string]any) {
	t.Helper()
	sys := newSystem()
	apply := func(doc map[string]any) {
		if err := sys.apply(doc); err != nil {
			t.Fatal(err)
		}
		if err := sys.settle(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, doc := range docs {
		apply(doc)
	}
	var at string
	defer func() {
		if p := recover(); p != nil {
			panic(fmt.Sprintf("%s: %s: %v", name, at, p))
		}
	}()
	for _, doc := range docs {
		if doc["kind"] == "ServiceEntry" {
			continue // The stores of ServiceEntries validate them.
		}
		for _, path := range fieldsOf(doc["spec"], nil) {
			at = fmt.Sprint(doc["kind"], " ", text(doc, "metadata", "name"), " without spec", path)
			incomplete := asMap(doc)
			remove(incomplete["spec"], path)
			apply(incomplete)
		}
		apply(doc)
	}
	if diff := diffSnapshots(sys.fresh(), sys.converter.Snapshot()); diff != "" {
		t.Errorf("%s (-fresh +incremental):\n%s", name, diff)
	}
}

// fieldsOf returns the paths of all fields at any depth: names of fields, and positions in lists.
func fieldsOf(value any, at []any) (out [][]any) {
	switch v := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			path := append(slices.Clip(at), key)
			out = append(append(out, path), fieldsOf(v[key], path)...)
		}
	case []any:
		for i, element := range v {
			out = append(out, fieldsOf(element, append(slices.Clip(at), i))...)
		}
	}
	return out
}

// remove removes the field of a path.
func remove(from any, path []any) {
	for ; len(path) > 1; path = path[1:] {
		if i, ok := path[0].(int); ok {
			from = from.([]any)[i]
		} else {
			from = from.(map[string]any)[path[0].(string)]
		}
	}
	delete(from.(map[string]any), path[0].(string))
}
