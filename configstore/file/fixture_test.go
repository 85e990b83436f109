// SPDX-License-Identifier: Apache-2.0

package file_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/file"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/configstore/manifest"
	"github.com/pilotkit/pilotkit/configstore/memory"
)

// fixture is a directory with a source that is driven by Reload, the store that
// it fills, and the events of the store.
type fixture struct {
	*testing.T
	dir    string
	store  *memory.Store
	cache  *memory.Controller
	source *file.Source
	events []string
	log    *bytes.Buffer
}

func newFixture(t *testing.T, opts file.Options) *fixture {
	t.Helper()
	f := &fixture{T: t, dir: filepath.Join(t.TempDir(), "config"), log: &bytes.Buffer{}}
	f.mkdir(".")
	f.store = memory.Make(istio.Schemas(), memory.Options{DetectMutations: true})
	f.cache = memory.NewController(f.store)
	for _, schema := range f.store.Schemas().All() {
		f.cache.RegisterEventHandler(schema.GroupVersionKind, func(_, curr configstore.Config, event configstore.Event) {
			f.events = append(f.events, event.String()+" "+describe(curr))
		})
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.NewTextHandler(f.log, nil))
	}
	f.source = file.New(f.dir, f.store, opts)
	return f
}

// describe writes an object as "ns/name=host", or "Kind ns/name" if it is no
// ServiceEntry.
func describe(c configstore.Config) string {
	if entry, ok := c.Spec.(*networking.ServiceEntry); ok {
		return c.Namespace + "/" + c.Name + "=" + strings.ReplaceAll(strings.Join(entry.Hosts, ","), ".test", "")
	}
	return c.Key().Object()
}

// entry returns a ServiceEntry as users write it.
func entry(name, host string) string {
	return fmt.Sprintf(`apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata:
  name: %q
  namespace: ns
spec:
  hosts:
  - %q
  ports:
  - number: 80
    name: http
    protocol: HTTP
  resolution: DNS
`, name, host+".test")
}

// docs joins documents.
func docs(texts ...string) string { return strings.Join(texts, "---\n") }

// Documents that are bad in different ways.
func unknownField(name string) string {
	return strings.Replace(entry(name, "bad.example.com"), "  hosts:", "  hostz: 1\n  hosts:", 1)
}

func brokenYAML(name string) string {
	return strings.Replace(entry(name, "bad.example.com"), "  ports:", "  ports: [", 1)
}

func invalid(name string) string {
	return strings.Replace(entry(name, "bad.example.com"), "number: 80", "number: 70000", 1)
}

func (f *fixture) path(name string) string { return filepath.Join(f.dir, filepath.FromSlash(name)) }

func (f *fixture) write(name, text string) {
	f.Helper()
	f.mkdir(filepath.Dir(name))
	f.must(os.WriteFile(f.path(name), []byte(text), 0o600))
}

func (f *fixture) mkdir(name string) { f.Helper(); f.must(os.MkdirAll(f.path(name), 0o750)) }

func (f *fixture) remove(name string) { f.Helper(); f.must(os.RemoveAll(f.path(name))) }

func (f *fixture) rename(from, to string) { f.Helper(); f.must(os.Rename(f.path(from), f.path(to))) }

func (f *fixture) symlink(target, name string) { f.Helper(); f.must(os.Symlink(target, f.path(name))) }

func (f *fixture) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

// reload reloads and forgets earlier events.
func (f *fixture) reload() {
	f.Helper()
	f.events = nil
	f.must(f.source.Reload())
	f.cache.Drain()
}

// wantStore compares the ServiceEntries in the store.
func (f *fixture) wantStore(want ...string) {
	f.Helper()
	var got []string
	for _, c := range f.store.List(istio.ServiceEntry, configstore.NamespaceAll) {
		got = append(got, describe(*c))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		f.Errorf("store (-want +got):\n%s", diff)
	}
}

// wantEvents compares the events since the last reload.
func (f *fixture) wantEvents(want ...string) {
	f.Helper()
	if diff := cmp.Diff(want, f.events); diff != "" {
		f.Errorf("events (-want +got):\n%s", diff)
	}
}

// wantErrors compares the errors, each by its beginning, without the directory.
func (f *fixture) wantErrors(want ...string) {
	f.Helper()
	got := f.errors()
	if len(got) != len(want) {
		f.Errorf("got %d errors, want %d:\n%s", len(got), len(want), strings.Join(got, "\n"))
		return
	}
	for i, w := range want {
		if !strings.HasPrefix(got[i], w) {
			f.Errorf("error %d = %q, want %q…", i, got[i], w)
		}
	}
}

func (f *fixture) errors() []string {
	var out []string
	for _, e := range f.source.Errors() {
		out = append(out, strings.ReplaceAll(e.Error(), f.dir+string(filepath.Separator), ""))
	}
	return out
}

// parse returns the object of a document.
func (f *fixture) parse(text string) configstore.Config {
	f.Helper()
	configs, err := manifest.ParseAll(istio.Schemas(), []byte(text), manifest.Options{})
	f.must(err)
	return configs[0]
}
