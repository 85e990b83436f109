// SPDX-License-Identifier: Apache-2.0

package aggregate_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"google.golang.org/protobuf/types/known/structpb"

	"github.com/pilotkit/pilotkit/aggregate"
	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/memory"
	"github.com/pilotkit/pilotkit/internal/test/histories"
	"github.com/pilotkit/pilotkit/internal/test/testmain"
)

func kind(name string) configstore.GroupVersionKind {
	return configstore.GroupVersionKind{Group: "example.com", Version: "v1", Kind: name}
}

func schemas(names ...string) configstore.Schemas {
	b := configstore.NewSchemasBuilder()
	for _, name := range names {
		b.MustAdd(configstore.Schema{GroupVersionKind: kind(name), Aliases: []string{"v1beta1"}, Spec: &structpb.Struct{}})
	}
	return b.Build()
}

func object(kindName, namespace, name, value string) configstore.Config {
	return configstore.Config{
		Meta: configstore.Meta{GroupVersionKind: kind(kindName), Namespace: namespace, Name: name},
		Spec: &structpb.Struct{Fields: map[string]*structpb.Value{"value": structpb.NewStringValue(value)}},
	}
}

func value(c *configstore.Config) string {
	if c == nil {
		return "<none>"
	}
	spec, ok := c.Spec.(*structpb.Struct)
	if !ok {
		return "<no struct>"
	}
	return spec.GetFields()["value"].GetStringValue()
}

// world is an aggregate with the members that it is made of.
type world struct {
	t       *testing.T
	members []*memory.Controller
	cache   *aggregate.Cache
}

func newWorld(t *testing.T, options memory.Options) *world {
	t.Helper()
	return newWorldOf(t, options, func(m *memory.Controller) configstore.ConfigStoreCache { return m })
}

func newWorldOf(t *testing.T, options memory.Options, as func(*memory.Controller) configstore.ConfigStoreCache) *world {
	t.Helper()
	w := &world{t: t}
	var caches []configstore.ConfigStoreCache
	for _, names := range [][]string{{"A", "B"}, {"B", "C"}, {"A", "B", "C"}} {
		m := memory.NewController(memory.Make(schemas(names...), options))
		w.members = append(w.members, m)
		caches = append(caches, as(m))
	}
	w.cache = aggregate.MakeCache(caches...)
	return w
}

// expected recomputes what the aggregate has to show of a kind.
func (w *world) expected(kindName string) []*configstore.Config {
	var out []*configstore.Config
	seen := map[configstore.ConfigKey]bool{}
	for _, m := range w.members {
		for _, c := range m.List(kind(kindName), configstore.NamespaceAll) {
			if !seen[c.Key()] {
				seen[c.Key()] = true
				out = append(out, c)
			}
		}
	}
	slices.SortFunc(out, func(a, b *configstore.Config) int { return a.Key().Compare(b.Key()) })
	return out
}

// check compares all reads with the recomputation.
func (w *world) check(when string) {
	w.t.Helper()
	if err := w.cache.Validate(); err != nil {
		w.t.Fatalf("%s: %v", when, err)
	}
	for _, kindName := range []string{"A", "B", "C"} {
		want := w.expected(kindName)
		if got := w.cache.List(kind(kindName), configstore.NamespaceAll); !slices.Equal(got, want) {
			w.t.Fatalf("%s: List(%s) = %v, want %v", when, kindName, keys(got), keys(want))
		}
		for n := range 3 {
			namespace := fmt.Sprint("ns-", n)
			in := slices.DeleteFunc(slices.Clone(want), func(c *configstore.Config) bool { return c.Namespace != namespace })
			if got := w.cache.List(kind(kindName), namespace); !slices.Equal(got, in) {
				w.t.Fatalf("%s: List(%s, %s) = %v, want %v", when, kindName, namespace, keys(got), keys(in))
			}
			for i := range 6 {
				name := fmt.Sprint("o-", i)
				at := slices.IndexFunc(in, func(c *configstore.Config) bool { return c.Name == name })
				got := w.cache.Get(kind(kindName), name, namespace)
				if at < 0 && got != nil || at >= 0 && got != in[at] {
					w.t.Fatalf("%s: Get(%s %s/%s) = %s, want number %d of %v", when, kindName, namespace, name, value(got), at, keys(in))
				}
			}
		}
	}
}

func keys(list []*configstore.Config) []string {
	out := make([]string, len(list))
	for i, c := range list {
		out[i] = c.Key().String() + "=" + value(c)
	}
	return out
}

// timeline applies events and finds those that do not follow from the ones before.
type timeline struct {
	t     *testing.T
	mu    sync.Mutex
	state map[configstore.ConfigKey]configstore.Config
}

func (l *timeline) handle(old, curr configstore.Config, event configstore.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	last, ok := l.state[curr.Key()]
	right := map[configstore.Event]bool{
		configstore.EventAdd:    !ok && old.Spec == nil,
		configstore.EventUpdate: ok && old.Spec == last.Spec && old.ResourceVersion == last.ResourceVersion && !curr.Equal(old),
		configstore.EventDelete: ok && old.Spec == nil && curr.Spec == last.Spec,
	}[event]
	if !right {
		l.t.Errorf("%s %s from %s to %s does not follow from %s (there: %t)", event, curr.Key(), value(&old), value(&curr), value(&last), ok)
	}
	if l.state[curr.Key()] = curr; event == configstore.EventDelete {
		delete(l.state, curr.Key())
	}
}

func (l *timeline) register(cache configstore.ConfigStoreCache) *timeline {
	l.state = map[configstore.ConfigKey]configstore.Config{}
	for _, kindName := range []string{"A", "B", "C"} {
		cache.RegisterEventHandler(kind(kindName), l.handle)
	}
	return l
}

func (l *timeline) expect(when string, w *world) {
	l.t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	total := 0
	for _, kindName := range []string{"A", "B", "C"} {
		for _, c := range w.expected(kindName) {
			total++
			if known := l.state[c.Key()]; known.Spec != c.Spec {
				l.t.Fatalf("%s: events lead to %s = %s, reads to %s", when, c.Key(), value(&known), value(c))
			}
		}
	}
	if total != len(l.state) {
		l.t.Fatalf("%s: events lead to %d objects, reads to %d", when, len(l.state), total)
	}
}

// write does one random thing to one member; it may fail, which is fine.
func write(rng *rand.Rand, m *memory.Controller, step string) string {
	kinds := m.Schemas().All()
	c := object(kinds[rng.IntN(len(kinds))].GroupVersionKind.Kind, fmt.Sprint("ns-", rng.IntN(3)), fmt.Sprint("o-", rng.IntN(6)), step)
	switch rng.IntN(5) {
	case 0, 1:
		_, err := m.Create(c)
		return fmt.Sprintf("create %s: %v", c.Key(), err)
	case 2, 3:
		_, err := m.Update(c)
		return fmt.Sprintf("update %s: %v", c.Key(), err)
	default:
		return fmt.Sprintf("delete %s: %v", c.Key(), m.Delete(c.GroupVersionKind, c.Name, c.Namespace, nil))
	}
}

// TestCacheRandomHistories compares the aggregate with a recomputation from its
// members, and its events with its reads, after random changes of the members.
func TestCacheRandomHistories(t *testing.T) {
	for _, seed := range histories.Seeds(t, 12) {
		rng := rand.New(rand.NewPCG(seed, 1))
		// With a history of 4 changes a read often finds that it does not reach back.
		w := newWorld(t, memory.Options{HistoryLimit: 4 + int(seed%2)*100, DetectMutations: true})
		lines := []*timeline{(&timeline{t: t}).register(w.cache)}
		var last string
		for step := range 300 {
			m := rng.IntN(len(w.members))
			last = fmt.Sprintf("seed %d, step %d, member %d: %s", seed, step, m, write(rng, w.members[m], fmt.Sprint(step)))
			switch rng.IntN(12) {
			case 0:
				w.check(last)
			case 1:
				w.cache.Drain()
				for _, l := range lines {
					l.expect(last, w)
				}
			case 2:
				w.members[rng.IntN(len(w.members))].Drain()
			case 3:
				if len(lines) < 6 {
					lines = append(lines, (&timeline{t: t}).register(w.cache))
				}
			}
			if t.Failed() {
				t.Fatal(last)
			}
		}
		w.check(last)
		w.cache.Drain()
		for _, l := range lines {
			l.expect(last, w)
		}
	}
}

// TestCacheOfPlainCachesRandomHistories is the same for members that can do
// nothing beyond their interface: what is seen are their events.
func TestCacheOfPlainCachesRandomHistories(t *testing.T) {
	for _, seed := range histories.Seeds(t, 6) {
		rng := rand.New(rand.NewPCG(seed, 2))
		w := newWorldOf(t, memory.Options{}, func(m *memory.Controller) configstore.ConfigStoreCache { return plain{m} })
		line := (&timeline{t: t}).register(w.cache)
		for step := range 200 {
			m := rng.IntN(len(w.members))
			last := fmt.Sprintf("seed %d, step %d, member %d: %s", seed, step, m, write(rng, w.members[m], fmt.Sprint(step)))
			if rng.IntN(8) > 0 {
				continue
			}
			for _, m := range w.members {
				m.Drain()
			}
			w.cache.Drain()
			w.checkValues(last)
			line.expect(last, w)
			if t.Failed() {
				t.Fatal(last)
			}
		}
	}
}

// checkValues is check for members whose events carry copies.
func (w *world) checkValues(when string) {
	w.t.Helper()
	if err := w.cache.Validate(); err != nil {
		w.t.Fatalf("%s: %v", when, err)
	}
	for _, kindName := range []string{"A", "B", "C"} {
		got, want := keys(w.cache.List(kind(kindName), configstore.NamespaceAll)), keys(w.expected(kindName))
		if !slices.Equal(got, want) {
			w.t.Fatalf("%s: List(%s) = %v, want %v", when, kindName, got, want)
		}
	}
}

// TestCacheConcurrentHistories does the same with everything at the same time.
func TestCacheConcurrentHistories(t *testing.T) {
	for _, seed := range histories.Seeds(t, 4) {
		w := newWorld(t, memory.Options{HistoryLimit: 1 + int(seed)*8})
		stop, ended := make(chan struct{}), make(chan struct{})
		lines := []*timeline{(&timeline{t: t}).register(w.cache)}
		go func() {
			defer close(ended)
			w.cache.Run(stop)
		}()
		var writers, readers sync.WaitGroup
		for i, m := range w.members {
			writers.Go(func() {
				rng := rand.New(rand.NewPCG(seed, uint64(i)))
				for step := range 400 {
					write(rng, m, fmt.Sprint(i, "-", step))
				}
			})
		}
		writers.Go(func() {
			for range 400 { // the invariants hold between any two changes
				if err := w.cache.Validate(); err != nil {
					t.Error(err)
				}
			}
		})
		done := make(chan struct{})
		for range 3 {
			readers.Go(func() { w.readUntil(done) })
		}
		for range 4 {
			lines = append(lines, (&timeline{t: t}).register(w.cache))
		}
		writers.Wait()
		close(done)
		readers.Wait()
		w.check("at the end")
		if err := w.cache.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, l := range lines {
			l.expect("at the end", w)
		}
		close(stop)
		<-ended
	}
}

// readUntil reads what can be checked while others write: lists are sorted and
// have every key once.
func (w *world) readUntil(done chan struct{}) {
	for {
		select {
		case <-done:
			return
		default:
		}
		list := w.cache.List(kind("B"), configstore.NamespaceAll)
		for i := range list {
			if i > 0 && list[i-1].Key().Compare(list[i].Key()) >= 0 {
				w.t.Errorf("List = %v, want sorted keys, each once", keys(list))
				return
			}
		}
		if c := w.cache.Get(kind("B"), "o-1", "ns-1"); c != nil && (c.Name != "o-1" || c.Namespace != "ns-1") {
			w.t.Errorf("Get(o-1) = %s", c.Key())
			return
		}
	}
}

// TestLoweredSizes runs the models with all buffers too small.
func TestLoweredSizes(t *testing.T) {
	t.Parallel()
	testmain.Lowered(t, "RandomHistories$")
}
