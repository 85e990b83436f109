// SPDX-License-Identifier: Apache-2.0

package manifest_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

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
		{"circle", "apiVersion: v1\nkind: Free\nmetadata: {name: a}\nspec: &a {a: *a}\n", "nested more than 200 levels"},
		{"circle of merges", "apiVersion: v1\nkind: Free\nmetadata: {name: a}\nspec: &a {<<: *a}\n", "nested more than 200 levels"},
		{"list of itself", "apiVersion: v1\nkind: List\nitems: &a\n- apiVersion: v1\n  kind: List\n  items: *a\n", "nested more than 200 levels"},
		{"deep", deep(300), "nested more than 200 levels"},
		{"very deep", deep(200_000), "depth"},
		{"deep JSON", `{"apiVersion":"v1","kind":"Free","metadata":{"name":"a"},"spec":{"a":` + strings.Repeat("[", 9000) + strings.Repeat("]", 9000) + "}}", "nested more than 200 levels"},
		{"wrong all over", wrong, "given twice"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			docs := manifest.Parse(freeform(), []byte(tt.text), manifest.Options{})
			if len(docs) != 1 || !errors.Is(docs[0].Err, manifest.ErrMalformed) || !strings.Contains(docs[0].Err.Error(), tt.want) {
				t.Fatalf("got %d documents, want one with an error about %q: %v", len(docs), tt.want, docs)
			}
			if n := len(docs[0].Err.Error()); n > 100_000 {
				t.Errorf("the error has %d bytes", n)
			}
		})
	}
	if _, err := manifest.ParseAll(freeform(), []byte(deep(150)), manifest.Options{}); err != nil {
		t.Errorf("150 levels: %v", err)
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
