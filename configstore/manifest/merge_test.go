// SPDX-License-Identifier: Apache-2.0

package manifest_test

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/types/known/structpb"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/manifest"
)

func structSchemas(kinds ...string) configstore.Schemas {
	b := configstore.NewSchemasBuilder()
	for _, kind := range kinds {
		b.MustAdd(configstore.Schema{
			GroupVersionKind: configstore.GroupVersionKind{Group: "example.com", Version: "v1", Kind: kind}, Spec: &structpb.Struct{},
		})
	}
	return b.Build()
}

// TestFirstMergedValueCounts: of values that are merged under one key the first
// counts, whether there are few keys or many.
func TestFirstMergedValueCounts(t *testing.T) {
	for _, keys := range []int{2, 30} {
		var first strings.Builder
		for i := range keys {
			fmt.Fprintf(&first, "      k%d: first\n", i)
		}
		docs := manifest.Parse(structSchemas("Widget"), fmt.Appendf(nil, `apiVersion: example.com/v1
kind: Widget
metadata:
  name: a
  labels:
    <<:
    - &first
%s    - k0: second
      other: second
    own: own
`, first.String()), manifest.Options{})
		if len(docs) != 1 || docs[0].Err != nil {
			t.Fatalf("%d documents, %v", len(docs), docs[0].Err)
		}
		labels := docs[0].Config.Labels
		if len(labels) != keys+2 || labels["k0"] != "first" || labels["other"] != "second" || labels["own"] != "own" {
			t.Errorf("%d keys: labels %v", keys, labels)
		}
	}
}

// TestKindThatEndsInList: a kind of the schemas is not a list of objects, regardless of its name.
func TestKindThatEndsInList(t *testing.T) {
	docs := manifest.Parse(structSchemas("Allow", "AllowList"), []byte(`apiVersion: example.com/v1
kind: AllowList
metadata: {name: a, namespace: ns}
spec: {items: [x, y]}
`), manifest.Options{})
	if len(docs) != 1 || docs[0].Err != nil || docs[0].Key.Kind.Kind != "AllowList" || docs[0].Config.Spec == nil {
		t.Errorf("Parse = %+v, want one AllowList", docs)
	}
	docs = manifest.Parse(structSchemas("Allow"), []byte(`apiVersion: example.com/v1
kind: AllowList
items: [{metadata: {name: a}, spec: {x: y}}]
`), manifest.Options{})
	if len(docs) != 1 || docs[0].Err != nil || docs[0].Key.Kind.Kind != "Allow" {
		t.Errorf("Parse = %+v, want one Allow", docs)
	}
}
