// SPDX-License-Identifier: Apache-2.0

package file_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pilotkit/pilotkit/configstore/file"
	"github.com/pilotkit/pilotkit/configstore/memory"
	"github.com/pilotkit/pilotkit/internal/test/histories"
)

// randomText returns a document that is independent of previous ones: an object, with or without
// warnings, from a few names, so that many are duplicates; or a document that is always bad,
// mistyped, foreign or empty.
func randomText(r *rand.Rand) string {
	switch r.IntN(12) {
	case 0:
		return zone(fmt.Sprintf("bad%d", r.IntN(3)), "bad")
	case 1:
		return zone(fmt.Sprintf("bad%d", r.IntN(3)), "[")
	case 2:
		return "apiVersion: example.com/v1\nkind: Zoneling\nmetadata: {name: x}\n"
	case 3:
		return "apiVersion: v1\nkind: Service\nmetadata: {name: x}\n"
	case 4:
		return "# nothing\n"
	case 5:
		return zone(fmt.Sprintf("z%d", r.IntN(8)), "good") + "---\n" + zone(fmt.Sprintf("z%d", r.IntN(8)), "odd")
	default:
		return zone(fmt.Sprintf("z%d", r.IntN(8)), []string{"good", "odd", "other"}[r.IntN(3)])
	}
}

// Over random histories of edits, an incremental source reports and stores the same as a new source
// that reads everything.
func TestRandomEditsAgainstReadingEverything(t *testing.T) {
	for _, seed := range histories.Seeds(t, 6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			f, _ := zoneFixture(t, file.Options{MaxErrors: 5})
			files := map[string][]string{}
			for step := range 120 {
				name := fmt.Sprintf("f%d.yaml", r.IntN(3))
				texts := files[name]
				for range 1 + r.IntN(3) {
					texts = randomEdit(r, texts)
				}
				files[name] = texts
				if len(texts) == 0 {
					f.remove(name)
				} else {
					f.write(name, "---\n"+docs(texts...))
				}
				f.must(f.source.Reload())
				fresh := memory.Make(f.store.Schemas())
				all := file.New(f.dir, fresh, file.Options{MaxErrors: 5})
				f.must(all.Reload())
				got, want := f.source.Report(), all.Report()
				if diff := cmp.Diff(f.texts(want.Errors), f.texts(got.Errors)); diff != "" {
					t.Fatalf("step %d: errors (-everything read +changes read):\n%s", step, diff)
				}
				if diff := cmp.Diff(f.texts(want.Warnings), f.texts(got.Warnings)); diff != "" {
					t.Fatalf("step %d: warnings (-everything read +changes read):\n%s", step, diff)
				}
				if got.Foreign != want.Foreign || got.Other != want.Other {
					t.Fatalf("step %d: %d foreign, %d other documents, want %d and %d", step, got.Foreign, got.Other, want.Foreign, want.Other)
				}
				if diff := cmp.Diff(addresses(fresh), addresses(f.store)); diff != "" {
					t.Fatalf("step %d: store (-everything read +changes read):\n%s", step, diff)
				}
			}
		})
	}
}

// randomEdit inserts, replaces, removes, copies or moves a document.
func randomEdit(r *rand.Rand, texts []string) []string {
	if len(texts) == 0 || len(texts) < 12 && r.IntN(3) == 0 {
		at := r.IntN(len(texts) + 1)
		return append(append(append([]string(nil), texts[:at]...), randomText(r)), texts[at:]...)
	}
	texts = append([]string(nil), texts...)
	i, j := r.IntN(len(texts)), r.IntN(len(texts))
	switch r.IntN(4) {
	case 0:
		texts[i] = randomText(r)
	case 1:
		texts[i], texts[j] = texts[j], texts[i]
	case 2:
		texts[i] = texts[j]
	default:
		texts = append(texts[:i], texts[i+1:]...)
	}
	return texts
}

func addresses(store *memory.Store) []string {
	var out []string
	for _, c := range store.List(store.Schemas().All()[0].GroupVersionKind, "") {
		out = append(out, fmt.Sprint(c.Name, " ", c.Spec))
	}
	return out
}
