// SPDX-License-Identifier: Apache-2.0

package file_test

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/file"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/configstore/memory"
)

// panickingStore panics at an object.
type panickingStore struct {
	*memory.Store
	panics *bool
}

func (s panickingStore) check(c configstore.Config) {
	if *s.panics && c.Name == "bad" {
		panic("at this one")
	}
}

func (s panickingStore) Apply(mutations ...configstore.Mutation) (uint64, error) {
	for _, m := range mutations {
		s.check(m.Config)
	}
	return s.Store.Apply(mutations...)
}

func (s panickingStore) Update(c configstore.Config) (string, error) {
	s.check(c)
	return s.Store.Update(c)
}

// A panic about one object, of its schema or of the store, is an error of that object,
// which is logged once. Others are followed, also in its file.
func TestPanicOfOneObject(t *testing.T) {
	for _, ofStore := range []bool{false, true} {
		t.Run(fmt.Sprintf("of the store %t", ofStore), func(t *testing.T) {
			panics, never := false, false
			schema, _ := istio.Schemas().Find(istio.ServiceEntry)
			schema.Validate = func(c configstore.Config) (warnings, violations []configstore.Violation) {
				if panics && !ofStore && c.Name == "bad" {
					panic("at this one")
				}
				return nil, nil
			}
			f := newFixture(t, file.Options{})
			f.store = memory.Make(configstore.NewSchemasBuilder().MustAdd(schema).Build())
			store := panickingStore{f.store, &never}
			if ofStore {
				store.panics = &panics
			}
			f.source = file.New(f.dir, store, file.Options{Logger: slog.New(slog.NewTextHandler(f.log, nil))})
			write := func(host string) {
				f.write("a.yaml", docs(entry("bad", host), entry("good", host)))
				f.write("b.yaml", entry("other", host))
				f.must(f.source.Reload())
			}
			write("one")
			panics = true
			for _, host := range []string{"two", "three"} {
				write(host)
				f.wantStore("ns/bad=one", "ns/good="+host, "ns/other="+host)
				if got := f.errors(); len(got) != 1 || !strings.HasPrefix(got[0], "a.yaml") || !strings.Contains(got[0], "ns/bad") || !strings.Contains(got[0], "panic: at this one") {
					t.Errorf("errors %q, want one, of the object at which it panics", got)
				}
			}
			if log := f.log.String(); strings.Count(log, "at this one") != 1 || ofStore && !strings.Contains(log, "panic_test.go") {
				t.Errorf("want it logged once, that of the store with its stack: %s", log)
			}
			panics = false
			write("four")
			f.wantStore("ns/bad=four", "ns/good=four", "ns/other=four")
			f.wantErrors()
		})
	}
}
