// SPDX-License-Identifier: Apache-2.0

package manifest_test

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"google.golang.org/protobuf/types/known/structpb"

	"github.com/pilotkit/pilotkit/configstore/manifest"
)

// Inputs that are small and would become large, or deep, or endless.
func TestBombs(t *testing.T) {
	laughs := "apiVersion: v1\nkind: Free\nmetadata: {name: a}\nspec:\n  a0: &a0 [lol]\n"
	merges := strings.Replace(laughs, "[lol]", "{k: lol}", 1)
	for i := 1; i < 30; i++ {
		laughs += fmt.Sprintf("  a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d,", i-1), 10), ","))
		merges += fmt.Sprintf("  a%d: &a%d {<<: [%s]}\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d,", i-1), 10), ","))
	}
	deep := func(n int) string {
		return "apiVersion: v1\nkind: Free\nmetadata: {name: a}\nspec: {a: " + strings.Repeat("[", n) + strings.Repeat("]", n) + "}\n"
	}
	long := "apiVersion: v1\nkind: Free\nmetadata: {name: a}\nspec:\n  a: &a " + strings.Repeat("x", 100_000) + "\n  b: [" + strings.Repeat("*a,", 10_000) + "]\n"
	wrong := "apiVersion: v1\nkind: Free\nmetadata:\n  name: a\n" + strings.Repeat("  x: 1\n", 10_000)
	for _, tt := range []struct{ name, text, want string }{
		{"laughs", laughs, "expands to too much"},
		{"merges", merges, "expands to too much"},
		{"long string, often", long, "expands to too much"},
		{"circle", "apiVersion: v1\nkind: Free\nmetadata: {name: a}\nspec: &a {a: *a}\n", "document 1, Free a: line 4, column 14: is an alias that contains itself: *a"},
		{"circle of merges", "apiVersion: v1\nkind: Free\nmetadata: {name: a}\nspec: &a {<<: *a}\n", "line 4, column 15: is an alias that contains itself: *a"},
		{"list of itself", "apiVersion: v1\nkind: List\nitems: &a\n- apiVersion: v1\n  kind: List\n  items: *a\n", "line 6, column 10: is an alias that contains itself: *a"},
		{"metadata of itself in a broken document", "apiVersion: v1\nkind: Free\nmetadata: &a {name: a, <<: *a}\nspec: [\n", "is not valid YAML"},
		{"large and broken", "a: |\n" + strings.Repeat(" x\n", 400_000) + "b: [\n", "line 1: is not valid YAML"},
		{"chain of merges", mergeChain(2000, 2000), "nested more than 200 levels"},
		{"chains of merges", mergeChain(8000, 190), "expands to too much"},
		{"nodes", "a: [" + strings.Repeat("a,", 3<<20) + "]\n", "line 1: has more than 4194304 nodes"},
		{"deep", deep(300), "nested more than 200 levels"},
		{"very deep", deep(200_000), "depth"},
		{"deep JSON", `{"apiVersion":"v1","kind":"Free","metadata":{"name":"a"},"spec":{"a":` + strings.Repeat("[", 9000) + strings.Repeat("]", 9000) + "}}", "nested more than 200 levels"},
		{"wrong all over", wrong, "given twice"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var docs []manifest.Document
			spent := allocated(func() { docs = manifest.Parse(freeform(), []byte(tt.text), manifest.Options{}) })
			if limit := uint64(4<<20 + 200*len(tt.text)); spent > limit {
				t.Errorf("reading %d bytes took %d bytes of memory, want at most %d", len(tt.text), spent, limit)
			}
			if len(docs) != 1 || !errors.Is(docs[0].Err, manifest.ErrMalformed) || !strings.Contains(docs[0].Err.Error(), tt.want) {
				t.Fatalf("got %d documents, want one with an error about %q: %v", len(docs), tt.want, docs)
			}
			if n := len(docs[0].Err.Error()); n > 200 && tt.name != "wrong all over" || n > 100_000 {
				t.Errorf("the error has %d bytes: %.300s", n, docs[0].Err)
			}
		})
	}
	for levels, ok := range map[int]bool{150: true, 198: true, 203: false} {
		if _, err := manifest.ParseAll(freeform(), []byte(deep(levels)), manifest.Options{}); (err == nil) != ok {
			t.Errorf("%d levels: %v, want success %t", levels, err, ok)
		}
	}
}

// mergeChain returns an object with n mappings, in chains of a given length; each mapping merges
// the one above it.
func mergeChain(n, length int) string {
	var b strings.Builder
	b.WriteString("apiVersion: v1\nkind: Free\nmetadata: {name: a}\nspec:\n")
	for i := range n {
		if i%length == 0 {
			fmt.Fprintf(&b, "  a%d: &a%d {k%d: v}\n", i, i, i)
		} else {
			fmt.Fprintf(&b, "  a%d: &a%d {<<: *a%d, k%d: v}\n", i, i, i-1, i)
		}
	}
	return b.String()
}

// allocated returns the bytes that a function allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// What aliases stand for is bounded for all documents of an input together: many
// small bombs are a large one.
func TestExpansionOfManyDocuments(t *testing.T) {
	one := "apiVersion: v1\nkind: Free\nmetadata: {name: a}\nspec:\n  a: &a [" + strings.Repeat("x,", 100) + "]\n" +
		"  b: &b [" + strings.Repeat("*a,", 100) + "]\n  c: [" + strings.Repeat("*b,", 3) + "]\n---\n"
	good := 0
	for _, doc := range manifest.Parse(freeform(), []byte(strings.Repeat(one, 100)), manifest.Options{}) {
		if doc.Err == nil {
			good++
		} else if !strings.Contains(doc.Err.Error(), "expands to too much") {
			t.Fatal(doc.Err)
		}
	}
	if good < 2 || good > 20 {
		t.Errorf("%d of 100 documents were read that expand to 80 kB each, want a few", good)
	}
}

// What people do with anchors is far from the limit.
func TestAnchorsAsPeopleUseThem(t *testing.T) {
	text := "apiVersion: v1\nkind: Free\nmetadata: {name: a}\nspec:\n  base: &base {cpu: 1, memory: 1Gi, labels: {app: x, tier: y}}\n  all:\n"
	for i := range 2000 {
		text += fmt.Sprintf("  - {<<: *base, name: n%d}\n", i)
	}
	configs, err := manifest.ParseAll(freeform(), []byte(text), manifest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	all := configs[0].Spec.(*structpb.Struct).Fields["all"].GetListValue().Values
	if got := all[1999].GetStructValue().Fields; len(got) != 4 || got["memory"].GetStringValue() != "1Gi" || got["name"].GetStringValue() != "n1999" {
		t.Errorf("the last entry is %v", got)
	}
}

// An input with more documents than people write is refused at once.
func TestMaxDocuments(t *testing.T) {
	for _, document := range []string{"---\n{\n", "---\n", "---\na: b\n", "{\"a\":1}\n"} {
		text := []byte(strings.Repeat(document, 100_001))
		var docs []manifest.Document
		spent := allocated(func() { docs = manifest.Parse(freeform(), text, manifest.Options{}) })
		if len(docs) != 1 || docs[0].Err == nil || docs[0].Err.Error() != "the input has more than 100000 documents" {
			t.Errorf("%q: %d documents, want one error", document, len(docs))
		}
		if limit := uint64(32 << 20); spent > limit {
			t.Errorf("%q: took %d bytes of memory, want at most %d", document, spent, limit)
		}
	}
	text := []byte(strings.Repeat("---\na: b\n", 3))
	for _, tt := range []struct{ limit, want int }{{3, 3}, {2, 1}, {-1, 3}} {
		if docs := manifest.Parse(freeform(), text, manifest.Options{MaxDocuments: tt.limit}); len(docs) != tt.want {
			t.Errorf("MaxDocuments %d: %d documents, want %d", tt.limit, len(docs), tt.want)
		}
	}
}

func TestMaxBytes(t *testing.T) {
	text := []byte("apiVersion: v1\nkind: Free\nmetadata: {name: a}\n")
	for _, tt := range []struct {
		limit int
		ok    bool
	}{{0, true}, {-1, true}, {len(text), true}, {len(text) - 1, false}} {
		_, err := manifest.ParseAll(freeform(), text, manifest.Options{MaxBytes: tt.limit})
		if (err == nil) != tt.ok || err != nil && !errors.Is(err, manifest.ErrMalformed) {
			t.Errorf("MaxBytes %d: %v, want success %t", tt.limit, err, tt.ok)
		}
	}
}
