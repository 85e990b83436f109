// SPDX-License-Identifier: Apache-2.0

package file_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/file"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/configstore/memory"
)

// allocated returns the bytes that a function allocates.
func allocated(f func()) int {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return int(after.TotalAlloc - before.TotalAlloc)
}

// A file with too many documents is an error of one line, and keeps its previous objects.
func TestTooManyDocuments(t *testing.T) {
	f := newFixture(t, file.Options{})
	f.write("a.yaml", entry("a", "one"))
	f.write("b.yaml", entry("b", "one"))
	f.reload()
	f.write("a.yaml", strings.Repeat("---\n{\n", 200_000))
	f.write("b.yaml", entry("b", "two"))
	if spent := allocated(f.reload); spent > 32<<20 {
		t.Errorf("looking at 1.2 MB took %d bytes of memory, want at most 32 MiB", spent)
	}
	f.wantErrors("a.yaml: the input has more than 100000 documents")
	f.wantEvents("update ns/b=two")
	f.wantStore("ns/a=one", "ns/b=two")
	f.write("a.yaml", entry("a", "two"))
	f.reload()
	f.wantErrors()
	f.wantStore("ns/a=two", "ns/b=two")

	f = newFixture(t, file.Options{MaxDocuments: 2})
	f.write("a.yaml", docs(entry("a", "one"), entry("b", "one")))
	f.write("b.yaml", docs(entry("c", "one"), entry("d", "one"), entry("e", "one")))
	f.reload()
	f.wantStore("ns/a=one", "ns/b=one")
	f.wantErrors("b.yaml: the input has more than 2 documents")
}

func TestMaxFileBytes(t *testing.T) {
	text := entry("a", "one")
	for _, tt := range []struct {
		limit int
		want  []string
	}{{len(text), nil}, {len(text) - 1, []string{"a.yaml: the file is larger than the limit of"}}, {-1, nil}} {
		f := newFixture(t, file.Options{MaxFileBytes: tt.limit})
		f.write("a.yaml", text)
		f.reload()
		f.wantErrors(tt.want...)
	}
}

// For a file with many errors, the first ones are kept, and the valid objects are loaded.
func TestTooManyErrors(t *testing.T) {
	f := newFixture(t, file.Options{MaxErrors: 3})
	var texts []string
	for i := range 10 {
		texts = append(texts, unknownField(fmt.Sprintf("bad%d", i)), entry(fmt.Sprintf("good%d", i), "one"))
	}
	f.write("a.yaml", docs(texts...))
	f.write("b.yaml", unknownField("b"))
	want := []string{"a.yaml: 7 more", "a.yaml:7:", "a.yaml:36:", "a.yaml:65:", "b.yaml:7:"}
	for range 2 {
		f.reload()
		f.wantErrors(want...)
	}
	if n := len(f.store.List(istio.ServiceEntry, "ns")); n != 10 {
		t.Errorf("%d objects, want 10", n)
	}
	texts[0] = entry("bad0", "one")
	f.write("a.yaml", docs(texts...))
	f.reload()
	if n := len(f.source.Errors()); n < 4 {
		t.Errorf("%d errors, want no fewer than are kept", n)
	}
	texts = texts[len(texts)-2:]
	f.write("a.yaml", docs(texts...))
	f.reload()
	f.wantErrors("a.yaml:7:", "b.yaml:7:")
}

// An object that is in a file many times costs what its text costs.
func TestManyDuplicates(t *testing.T) {
	const n, maxErrors = 4000, 1000 // the default of Options
	for _, tt := range []struct {
		name string
		text func(i int) string
	}{
		{"all the same", func(int) string { return entry("a", "one") }},
		{"not quite", func(i int) string { return entry("a", fmt.Sprintf("h%d", i)) }},
		{"invalid", func(i int) string { return strings.Replace(invalid("a"), "70000", fmt.Sprint(70000+i), 1) }},
		{"malformed", func(i int) string { return unknownField("a") + fmt.Sprintf("# %d\n", i) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFixture(t, file.Options{})
			var b strings.Builder
			for i := range n {
				b.WriteString("---\n" + tt.text(i))
			}
			f.write("a.yaml", b.String())
			f.write("z.yaml", entry("z", "one"))
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			f.reload()
			runtime.GC()
			runtime.ReadMemStats(&after)
			if kept := int(after.HeapAlloc) - int(before.HeapAlloc); kept > 6*b.Len() {
				t.Errorf("%d bytes are kept of a file of %d", kept, b.Len())
			}
			if got := len(f.source.Errors()); got > maxErrors+1 {
				t.Errorf("%d errors, want at most %d and one that counts the others", got, maxErrors)
			}
			if got := f.errors()[0]; !strings.HasSuffix(got, "more errors or warnings") {
				t.Errorf("the first error is %q, want the number of the others", got)
			}
			// Each definition is touched a few times, not once for each other.
			f.write("a.yaml", entry("a", "end"))
			f.reload()
			f.wantErrors()
			f.wantStore("ns/a=end", "ns/z=one")
		})
	}
}

// While a file is read, memory is proportional to the kept content, and not to the trees of all its
// documents.
func TestMemoryWhileReading(t *testing.T) {
	const n = 1000
	f := newFixture(t, file.Options{})
	var size, at, held int
	schema, _ := istio.Schemas().Find(istio.ServiceEntry)
	var before, now runtime.MemStats
	schema.Validate = func(configstore.Config) (warnings, violations []configstore.Violation) {
		if at++; at == n {
			runtime.GC()
			runtime.ReadMemStats(&now)
			held = int(now.HeapAlloc) - int(before.HeapAlloc)
		}
		return nil, nil
	}
	f.store = memory.Make(configstore.NewSchemasBuilder().MustAdd(schema).Build())
	f.source = file.New(f.dir, f.store, file.Options{})
	var b strings.Builder
	for i := range n {
		b.WriteString("---\n" + standardEntry(i, "svc"))
	}
	size = b.Len()
	f.write("a.yaml", b.String())
	b.Reset()
	runtime.GC()
	runtime.ReadMemStats(&before)
	f.must(f.source.Reload())
	if limit := 6 * size; held > limit || held < size {
		t.Errorf("%d bytes are held at the end of a file of %d, want at most %d", held, size, limit)
	}
	if got := f.store.List(istio.ServiceEntry, "ns-00"); len(got) != n/100 || len(got[0].Spec.(*networking.ServiceEntry).Endpoints) != 5 {
		t.Errorf("%d objects in ns-00, want %d", len(got), n/100)
	}
}
