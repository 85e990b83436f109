// SPDX-License-Identifier: Apache-2.0

package file_test

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/atomic"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/file"
	"github.com/pilotkit/pilotkit/configstore/manifest"
	"github.com/pilotkit/pilotkit/configstore/memory"
)

// zoneFixture is a fixture whose store knows one cluster-scoped kind. Of its
// objects, odd addresses are questionable and bad ones invalid; checked counts
// how many have been read.
func zoneFixture(t *testing.T, opts file.Options) (f *fixture, checked *atomic.Int64) {
	t.Helper()
	f = newFixture(t, file.Options{})
	checked = new(atomic.Int64)
	f.store = memory.Make(configstore.NewSchemasBuilder().MustAdd(configstore.Schema{
		GroupVersionKind: configstore.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Zone"},
		Spec:             &networking.WorkloadEntry{}, ClusterScoped: true,
		Validate: func(c configstore.Config) (warnings, violations []configstore.Violation) {
			checked.Inc()
			switch c.Spec.(*networking.WorkloadEntry).Address {
			case "odd":
				return []configstore.Violation{{Field: "spec.address", Message: "is odd"}}, nil
			case "bad":
				return nil, []configstore.Violation{{Field: "spec.address", Message: "is bad"}}
			case "awful":
				for i := range 300 {
					violations = append(violations, configstore.Violation{Field: "spec.address", Message: fmt.Sprint("is awful ", i)})
				}
				return nil, violations
			}
			return nil, nil
		},
	}).Build())
	f.cache = memory.NewController(f.store)
	opts.Logger = slog.New(slog.NewTextHandler(f.log, nil))
	f.source = file.New(f.dir, f.store, opts)
	return f, checked
}

func zone(name, address string) string {
	return fmt.Sprintf("apiVersion: example.com/v1\nkind: Zone\nmetadata:\n  name: %s\nspec:\n  address: %s\n", name, address)
}

// texts returns errors without the directory.
func (f *fixture) texts(errs []*file.Error) []string {
	var out []string
	for _, e := range errs {
		out = append(out, strings.ReplaceAll(e.Error(), f.dir+string(filepath.Separator), ""))
	}
	return out
}

func (f *fixture) wantWarnings(want ...string) {
	f.Helper()
	if diff := cmp.Diff(want, f.texts(f.source.Report().Warnings)); diff != "" {
		f.Errorf("warnings (-want +got):\n%s", diff)
	}
}

// A warning of the validator reaches the author of the file: with its place, once,
// until it is mended.
func TestWarnings(t *testing.T) {
	f, _ := zoneFixture(t, file.Options{})
	f.write("a.yaml", docs(zone("a", "good"), zone("b", "odd"), zone("c", "odd")))
	for range 3 {
		f.reload()
		f.wantErrors()
		f.wantWarnings("a.yaml:13:3: document 2, Zone b: spec.address: is odd", "a.yaml:20:3: document 3, Zone c: spec.address: is odd")
	}
	// The same elsewhere in the file, as it has been reported.
	f.write("a.yaml", docs("# a new line\n"+zone("a", "good"), zone("new", "good"), zone("b", "odd"), zone("c", "good")))
	f.reload()
	f.wantWarnings("a.yaml:21:3: document 3, Zone b: spec.address: is odd")
	for text, want := range map[string]int{`msg="manifest warning" `: 2, `object="Zone b"`: 1, `msg="manifest warning gone"`: 1} {
		if n := strings.Count(f.log.String(), text); n != want {
			t.Errorf("%q was logged %d times, want %d:\n%s", text, n, want, f.log)
		}
	}
	// An object of another writer is reported as such, and its warnings are not.
	f.write("0.yaml", zone("b", "good"))
	f.reload()
	f.wantWarnings()
	f.wantErrors("a.yaml:16:1: document 3, Zone b: object is defined elsewhere: 0.yaml:1, document 1")
	f.write("0.yaml", zone("b", "odd"))
	f.write("a.yaml", zone("z", "bad"))
	f.reload()
	f.wantWarnings("0.yaml:6:3: document 1, Zone b: spec.address: is odd")
	f.wantErrors("a.yaml:6:3: document 1, Zone z: spec.address: is bad")
}

// All that is wrong with an object is in its error, within reason.
func TestManyViolations(t *testing.T) {
	f, _ := zoneFixture(t, file.Options{})
	f.write("a.yaml", docs(zone("a", "good"), zone("b", "awful")))
	f.reload()
	f.wantErrors("a.yaml:13:3: document 2, Zone b: spec.address: is awful 0; spec.address: is awful 1; ")
	if n := strings.Count(f.errors()[0], "awful"); n != 100 {
		t.Errorf("%d violations are kept, want 100", n)
	}
}

// Errors in callers have the place in the current file, regardless of the document's place when it
// was read.
func TestPlacesInErrors(t *testing.T) {
	f, _ := zoneFixture(t, file.Options{})
	bad := zone("b", "good") + "more: 1\nless: 2\n"
	f.write("a.yaml", docs(zone("a", "good"), bad))
	f.reload()
	f.write("a.yaml", docs(zone("a", "good"), zone("new", "good"), bad))
	f.reload()
	var e *manifest.Error
	if errs := f.source.Errors(); len(errs) != 1 || !errors.As(errs[0], &e) {
		t.Fatalf("errors %v, want one of package manifest", errs)
	}
	if e.Document != 3 || len(e.Problems) != 2 || e.Problems[0].Line != 21 || e.Problems[1].Line != 22 {
		t.Errorf("%v, want document 3 and lines 21 and 22", e)
	}
	f.wantErrors("a.yaml:21:1: document 3, Zone b: line 21, column 1: more: unknown field; line 22, column 1: less: unknown field")
}

// An Error that a host makes of a manifest.Error without problems has a text, too.
func TestErrorWithoutProblems(t *testing.T) {
	e := &file.Error{File: "a.yaml", Line: 3, Err: &manifest.Error{}}
	if got, want := e.Error(), "a.yaml:3: "; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// A kind or a version that is unknown, but nearly one of the store's, is a typing
// error.
func TestMistypedKindsAreWarnings(t *testing.T) {
	f := newFixture(t, file.Options{})
	f.write("a.yaml", docs(
		strings.Replace(entry("a", "one"), "ServiceEntry", "ServiceEntri", 1),
		strings.Replace(entry("b", "one"), "/v1", "/v1beta7", 1),
		"apiVersion: v1\nkind: Service\nmetadata: {name: c}\n",
	))
	f.reload()
	f.wantErrors()
	f.wantWarnings(
		"a.yaml:2:1: document 1, ServiceEntri ns/a: kind: unknown kind networking.istio.io/v1/ServiceEntri: did you mean ServiceEntry?",
		"a.yaml:16:1: document 2, ServiceEntry ns/b: kind: unknown kind networking.istio.io/v1beta7/ServiceEntry: ServiceEntry has the versions v1, v1alpha3, v1beta1",
	)
	if r := f.source.Report(); r.Foreign != 1 {
		t.Errorf("%d foreign documents, want 1", r.Foreign)
	}
}

// Without validation the store decides, and there are no warnings.
func TestSkipValidation(t *testing.T) {
	f, checked := zoneFixture(t, file.Options{SkipValidation: true})
	f.write("a.yaml", docs(zone("a", "odd"), zone("b", "bad")))
	f.reload()
	f.wantWarnings()
	f.wantErrors(`a.yaml:8:1: document 2, Zone b: `)
	if checked.Load() == 0 {
		t.Error("the store has not validated anything")
	}
}

// Only changed documents of a file are read, and validated once: unchanged and moved documents are
// not read again, and the store accepts the evidence of the source.
func TestUnchangedDocumentsAreNotReadAgain(t *testing.T) {
	const n = 200
	f, checked := zoneFixture(t, file.Options{})
	write := func(texts ...string) { f.write("a.yaml", "---\n"+docs(texts...)) }
	var texts []string
	for i := range n {
		texts = append(texts, zone(fmt.Sprintf("z%03d", i), "good"))
	}
	write(texts...)
	expect := func(what string, want int64) {
		t.Helper()
		checked.Store(0)
		f.reload()
		if got := checked.Load(); got != want {
			t.Errorf("%s: %d validations, want %d", what, got, want)
		}
	}
	expect("all new", n)
	expect("nothing changed", 0)
	texts[100] = zone("z100", "other")
	write(texts...)
	expect("one changed", 1)
	texts = append([]string{"# comment\n" + zone("first", "good")}, texts...)
	write(texts...)
	expect("one new at the beginning", 1)
	texts[20], texts[150] = texts[150], texts[20]
	write(texts...)
	expect("two have changed places", 0)
	texts = append(texts[:70], texts[90:]...)
	write(texts...)
	expect("some are gone", 0)
	if got := f.store.List(f.store.Schemas().All()[0].GroupVersionKind, ""); len(got) != n+1-20 {
		t.Errorf("%d objects, want %d", len(got), n+1-20)
	}
}
