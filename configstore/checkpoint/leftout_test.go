// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/configstore/memory"
)

// loose is a cache that keeps what its schemas do not take.
type loose struct{ *memory.Controller }

func (loose) Schemas() configstore.Schemas { return istio.Schemas() }

func newLoose(tb testing.TB, objects ...configstore.Config) loose {
	tb.Helper()
	b := configstore.NewSchemasBuilder()
	for _, schema := range istio.Schemas().All() {
		schema.Text, schema.Validate = nil, nil
		b.MustAdd(schema)
	}
	s := loose{memory.NewController(memory.Make(b.Build(), memory.Options{Mirror: true}))}
	s.put(tb, objects...)
	return s
}

func (l loose) put(tb testing.TB, objects ...configstore.Config) {
	tb.Helper()
	(&source{Controller: l.Controller}).put(tb, objects...)
}

// bad is an entry that no store of Istio's kinds takes.
func bad(text string) configstore.Config {
	c := entry("bad", text)
	c.Spec.(interface{ GetHosts() []string }).GetHosts()[0] = "a\nb"
	return c
}

// TestOneObjectLeftOut: an object that cannot be shown keeps no other back, neither of the wrapped
// cache nor of a file, and SourceState says so until it can be.
func TestOneObjectLeftOut(t *testing.T) {
	path := filepath.Join(t.TempDir(), "checkpoint")
	s := newLoose(t, entry("a", "1"), bad("1"), entry("c", "1"))
	cache := New(s, path)
	problems := func(c *Cache) string {
		out := ""
		for _, p := range c.SourceState().Problems {
			out += p.Object.Name + ": " + p.Text
		}
		return out
	}
	cache.Drain()
	expectContents(t, "first", cache, "a 1", "c 1")
	s.put(t, entry("a", "2"), bad("2"))
	cache.Drain()
	expectContents(t, "changed", cache, "a 2", "c 1")
	if got := problems(cache); !strings.HasPrefix(got, "bad: ") || !strings.Contains(got, "spec.hosts[0]") {
		t.Errorf("problems %q", got)
	}
	s.put(t, entry("bad", "3"))
	cache.Drain()
	expectContents(t, "mended", cache, "a 2", "bad 3", "c 1")
	if got := problems(cache); got != "" {
		t.Errorf("problems %q", got)
	}
	s.put(t, bad("4"), entry("c", "4"))
	cache.Drain()
	expectContents(t, "the last good state", cache, "a 2", "bad 3", "c 4")
	if err := s.Delete(istio.ServiceEntry, "bad", "ns", nil); err != nil {
		t.Fatal(err)
	}
	cache.Drain()
	expectContents(t, "gone", cache, "a 2", "c 4")
	if got := problems(cache); got != "" {
		t.Errorf("problems %q", got)
	}

	s.put(t, bad("5"))
	writer := New(s.Controller, path)
	writer.Drain()
	expectContents(t, "written", writer, "a 2", "bad 5", "c 4")
	if err := writer.Save(); err != nil {
		t.Fatal(err)
	}
	reader := New(newSource(t, false), path)
	reader.Drain()
	expectContents(t, "read", reader, "a 2", "c 4")
	if got := problems(reader); !strings.HasPrefix(got, "bad: ") || reader.Status().Refused != nil {
		t.Errorf("problems %q, refused %v", got, reader.Status().Refused)
	}
}
