// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	networking "istio.io/api/networking/v1"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/configstore/memory"
	"github.com/pilotkit/pilotkit/internal/configfeed"
)

// entry is a ServiceEntry whose content differs by text.
func entry(name, text string) configstore.Config {
	return configstore.Config{
		Meta: configstore.Meta{
			GroupVersionKind: istio.ServiceEntry, Name: name, Namespace: "ns", Labels: map[string]string{"a": "1", "text": text},
			Annotations: map[string]string{"b": "2"}, UID: "uid-" + name, Domain: "cluster.local",
			CreationTimestamp: time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC),
			OwnerReferences:   []configstore.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "p", UID: "u", Controller: true}},
		},
		Spec: &networking.ServiceEntry{
			Hosts: []string{name + ".example.com"}, Location: networking.ServiceEntry_MESH_INTERNAL,
			Ports:      []*networking.ServicePort{{Number: 80, Name: "http", Protocol: "HTTP"}},
			Resolution: networking.ServiceEntry_STATIC,
			Endpoints:  []*networking.WorkloadEntry{{Address: "10.0.0.1"}, {Address: "10.0.0.2", Labels: map[string]string{"v": text}}},
		},
	}
}

// source is a cache that stands for one whose source is away until synced.
type source struct {
	*memory.Controller
	synced bool
}

// newSource returns a source whose objects have the given versions, as with sources that outlive
// the process.
func newSource(tb testing.TB, synced bool, objects ...configstore.Config) *source {
	tb.Helper()
	s := &source{memory.NewController(memory.Make(istio.Schemas(), memory.Options{Mirror: true})), synced}
	s.RegisterHasSyncedHandler(func() bool { return s.synced })
	s.put(tb, objects...)
	return s
}

func (s *source) put(tb testing.TB, objects ...configstore.Config) {
	tb.Helper()
	var batch []configstore.Mutation
	for _, o := range objects {
		o.ResourceVersion = "v" + o.Labels["text"]
		batch = append(batch, configstore.Mutation{Op: configstore.OpUpsert, Config: o})
	}
	if _, err := s.Apply(batch...); err != nil {
		tb.Fatal(err)
	}
}

// contents returns the objects of a cache as "name text".
func contents(r configstore.Reader) []string {
	var out []string
	for _, c := range r.List(istio.ServiceEntry, "") {
		out = append(out, c.Name+" "+c.Labels["text"])
	}
	return out
}

func expectContents(t *testing.T, when string, r configstore.Reader, want ...string) {
	t.Helper()
	if got := contents(r); !slices.Equal(got, want) {
		t.Errorf("%s: %q is shown, want %q", when, got, want)
	}
}

// events records the events of a cache, by batches.
type events struct{ batches [][]string }

func record(c *Cache) *events {
	e := &events{}
	configfeed.Subscribe(c, []configstore.GroupVersionKind{istio.ServiceEntry}, func(changes []configstore.Change) {
		var batch []string
		for _, ch := range changes {
			batch = append(batch, fmt.Sprint(ch.Event, " ", ch.Curr.Name, " ", ch.Curr.Labels["text"]))
		}
		e.batches = append(e.batches, batch)
	})
	return e
}

func (e *events) expect(t *testing.T, when string, want ...[]string) {
	t.Helper()
	got := e.batches
	e.batches = nil
	if !slices.EqualFunc(got, want, slices.Equal[[]string]) {
		t.Errorf("%s: handlers got %q, want %q", when, got, want)
	}
}

// saved makes a file of objects, and returns its path.
func saved(tb testing.TB, objects ...configstore.Config) string {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "checkpoint")
	save(tb, osDisk{}, path, objects...)
	return path
}

func save(tb testing.TB, d disk, path string, objects ...configstore.Config) {
	tb.Helper()
	c := newCache(newSource(tb, true, objects...), path, d, Options{})
	c.Drain()
	if err := c.Save(); err != nil {
		tb.Fatal(err)
	}
}
