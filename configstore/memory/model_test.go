// SPDX-License-Identifier: Apache-2.0

package memory_test

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/memory"
	"github.com/pilotkit/pilotkit/internal/configfeed"
	"github.com/pilotkit/pilotkit/internal/test/testmain"
	"github.com/pilotkit/pilotkit/internal/test/tier"
)

var modelDuration = flag.Duration("model.duration", 3*time.Second, "how long TestModel runs")

// TestModel runs random operations on many goroutines and records their results. The store's
// history is then the order of the successful ones; the test replays it on a map and demands that
// every result, every event, every list and every snapshot is that of the map at one moment between
// the call and its return.
func TestModel(t *testing.T) {
	if !tier.Full() {
		*modelDuration /= 10
	}
	seed := uint64(time.Now().UnixNano())
	rounds := 0
	for end := time.Now().Add(*modelDuration); time.Now().Before(end) && !t.Failed(); rounds++ {
		newModel(seed + uint64(rounds)).run(t)
	}
	t.Logf("%d rounds from seed %d", rounds, seed)
}

const (
	modelWriters = 4
	modelReaders = 2
	modelWatches = 3
	modelOps     = 300
)

// model is one round: a store and the observations of it.
type model struct {
	store   *memory.Store
	control *memory.Controller
	rand    *rand.Rand

	mu      sync.Mutex
	results []result
	reads   []read
	streams []*stream
}

// result is an operation and its result.
type result struct {
	span
	op       configstore.Op
	config   configstore.Config
	revision string
	err      error
	// batch is set for the operations of one Apply, whose errors are not known
	// apart; revision is then the store's.
	batch []configstore.Mutation
}

// read is the result of a read: the resource versions of a list, or of one object.
type read struct {
	span
	kind      configstore.GroupVersionKind
	namespace string
	name      string // empty: a list
	versions  []string
	source    string
}

// span is between which committed revisions something happened.
type span struct{ from, to uint64 }

// stream is the changes that one handler or watch saw, in order.
type stream struct {
	source string
	kinds  []configstore.GroupVersionKind
	// replayed handlers begin with the objects that exist.
	replayed bool
	// cancelled handlers may end early.
	cancelled bool
	from      uint64
	changes   []configstore.Change
}

func newModel(seed uint64) *model {
	m := &model{rand: rand.New(rand.NewPCG(seed, 0))}
	m.store = memory.Make(testSchemas(), memory.Options{HistoryLimit: 1 << 16, DetectMutations: seed%2 == 0})
	m.control = memory.NewController(m.store)
	return m
}

func (m *model) run(t *testing.T) {
	t.Helper()
	m.handle("early handler")
	m.handleBatch("early batch handler")
	stop := make(chan struct{})
	var running, working sync.WaitGroup
	running.Go(func() { m.control.Run(stop) })
	for range modelWriters {
		r := m.fork()
		working.Go(func() { m.write(r) })
	}
	// Without readers, the keys noted for lists pile up.
	for range m.rand.IntN(modelReaders + 1) {
		r := m.fork()
		working.Go(func() { m.read(r) })
	}
	r := m.fork()
	working.Go(func() { m.register(r) })
	working.Go(func() {
		for range modelOps { // the invariants hold between any two commits
			m.validate(t)
		}
	})
	watching := m.watchAll(t)
	working.Wait()
	watching()
	if err := m.control.Flush(t.Context()); err != nil {
		t.Errorf("Flush = %v", err)
	}
	close(stop)
	running.Wait()
	m.read(m.fork())
	m.validate(t)
	m.check(t)
}

func (m *model) validate(t *testing.T) {
	t.Helper()
	if err := m.store.Validate(); err != nil {
		t.Error(err)
	}
}

// fork returns a source of randomness for one goroutine.
func (m *model) fork() *rand.Rand { return rand.New(rand.NewPCG(m.rand.Uint64(), 1)) }

func modelKinds() []configstore.GroupVersionKind {
	return []configstore.GroupVersionKind{widget(), gadget()}
}

func modelNamespaces() []string { return []string{"a", "b", "c"} }

func pick[T any](r *rand.Rand, from []T) T { return from[r.IntN(len(from))] }

// write performs random writes.
func (m *model) write(r *rand.Rand) {
	for range modelOps {
		if r.IntN(6) == 0 {
			m.apply(r)
			continue
		}
		mutation := m.mutation(r)
		res := result{op: mutation.Op, config: mutation.Config, span: span{from: m.store.Revision()}}
		res.revision, res.err = m.do(mutation)
		res.to = m.store.Revision()
		m.keep(res)
	}
}

func (m *model) do(x configstore.Mutation) (string, error) {
	switch x.Op {
	case configstore.OpCreate:
		return m.control.Create(x.Config)
	case configstore.OpUpdate:
		return m.store.Update(x.Config)
	case configstore.OpUpdateStatus:
		return m.store.UpdateStatus(x.Config)
	case configstore.OpUpsert:
		return configstore.Upsert(m.store, x.Config)
	case configstore.OpDelete:
		var rv *string
		if x.Config.ResourceVersion != "" {
			rv = &x.Config.ResourceVersion
		}
		return "", m.store.Delete(x.Config.GroupVersionKind, x.Config.Name, x.Config.Namespace, rv)
	default:
		return "", errors.New("no such operation")
	}
}

func (m *model) apply(r *rand.Rand) {
	batch := make([]configstore.Mutation, 1+r.IntN(12))
	for i := range batch {
		batch[i] = m.mutation(r)
	}
	res := result{batch: batch, span: span{from: m.store.Revision()}}
	var revision uint64
	revision, res.err = m.store.Apply(batch...)
	res.revision = strconv.FormatUint(revision, 10)
	res.to = m.store.Revision()
	m.keep(res)
}

// mutation returns a random write, which may be impossible.
func (m *model) mutation(r *rand.Rand) configstore.Mutation {
	c := object(pick(r, modelKinds()), pick(r, modelNamespaces()), "n"+strconv.Itoa(r.IntN(5)), strconv.Itoa(r.IntN(3)))
	if r.IntN(4) == 0 {
		c.Labels = map[string]string{"l": strconv.Itoa(r.IntN(2))}
	}
	x := configstore.Mutation{Op: pick(r, []configstore.Op{configstore.OpCreate, configstore.OpUpdate, configstore.OpUpsert, configstore.OpUpdateStatus, configstore.OpDelete}), Config: c}
	if x.Op == configstore.OpUpdateStatus {
		x.Config.GroupVersionKind = widget()
		x.Config.Status = wrapperspb.String(strconv.Itoa(r.IntN(2)))
	}
	switch r.IntN(4) {
	case 0:
		x.Config.ResourceVersion = "0"
	case 1, 2:
		if cur := m.store.Get(x.Config.GroupVersionKind, c.Name, c.Namespace); cur != nil {
			x.Config.ResourceVersion = cur.ResourceVersion
		}
	}
	return x
}

// read performs random reads.
func (m *model) read(r *rand.Rand) {
	for range 2 * modelOps {
		kind, ns := pick(r, modelKinds()), pick(r, append(modelNamespaces(), configstore.NamespaceAll))
		x := read{kind: kind, namespace: ns, span: span{from: m.store.Revision()}}
		switch r.IntN(4) {
		case 0:
			x.source, x.namespace, x.name = "Get", pick(r, modelNamespaces()), "n"+strconv.Itoa(r.IntN(5))
			x.versions = versions(m.store.Get(kind, x.name, x.namespace))
		case 1:
			x.source, x.versions = "List", versions(m.store.List(kind, ns)...)
		case 2:
			snap := m.store.Snapshot()
			m.readSnapshot(snap, r)
			continue
		case 3:
			// An old snapshot of a store that has changed since.
			snap := m.store.Snapshot()
			for range r.IntN(20) {
				m.store.List(kind, pick(r, modelNamespaces()))
			}
			m.readSnapshot(snap, r)
			continue
		}
		x.to = m.store.Revision()
		m.mu.Lock()
		m.reads = append(m.reads, x)
		m.mu.Unlock()
	}
}

func (m *model) readSnapshot(snap *memory.Snapshot, r *rand.Rand) {
	at := span{snap.Revision(), snap.Revision()}
	var reads []read
	for range 3 {
		kind, ns := pick(r, modelKinds()), pick(r, append(modelNamespaces(), configstore.NamespaceAll))
		reads = append(reads, read{span: at, kind: kind, namespace: ns, source: "Snapshot.List", versions: versions(snap.List(kind, ns)...)})
		name := "n" + strconv.Itoa(r.IntN(5))
		reads = append(reads, read{
			span: at, kind: kind, namespace: "a", name: name, source: "Snapshot.Get",
			versions: versions(snap.Get(kind, name, "a")),
		})
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.reads = append(m.reads, reads...)
}

// versions returns the resource versions of objects that exist.
func versions(configs ...*configstore.Config) []string {
	out := []string{}
	for _, c := range configs {
		if c != nil {
			out = append(out, c.ResourceVersion)
		}
	}
	return out
}

func (m *model) keep(r result) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.results = append(m.results, r)
}

func (m *model) newStream(s *stream) *stream {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.streams = append(m.streams, s)
	return s
}

// handle registers one handler for each kind, which share a stream: there is one
// timeline for all kinds.
func (m *model) handle(source string) {
	for _, kind := range modelKinds() {
		s := m.newStream(&stream{source: source, kinds: []configstore.GroupVersionKind{kind}, replayed: true})
		m.control.RegisterEventHandler(kind, func(old, curr configstore.Config, event configstore.Event) {
			c := configstore.Change{Event: event, Curr: &curr}
			if event == configstore.EventUpdate {
				c.Old = &old
			}
			s.changes = append(s.changes, c)
		})
	}
}

func (m *model) handleBatch(source string) (cancel func()) {
	s := m.newStream(&stream{source: source, kinds: modelKinds(), replayed: true})
	stop := configfeed.Subscribe(m.control, modelKinds(), func(changes []configstore.Change) {
		s.changes = append(s.changes, changes...)
	})
	return func() {
		stop()
		m.mu.Lock()
		defer m.mu.Unlock()
		s.cancelled = true
	}
}

// register adds handlers while everything goes on.
func (m *model) register(r *rand.Rand) {
	for i := range 10 {
		for range r.IntN(50) {
			m.store.Get(widget(), "n0", "a")
			m.store.Snapshot()
		}
		m.handle(fmt.Sprintf("late handler %d", i))
		cancel := m.handleBatch(fmt.Sprintf("late batch handler %d", i))
		if i%2 == 0 {
			cancel()
		}
	}
}

// watchAll starts watches from random revisions. The returned function waits until they have seen
// everything.
func (m *model) watchAll(t *testing.T) (wait func()) {
	t.Helper()
	var watching sync.WaitGroup
	for range modelWatches {
		s := m.newStream(&stream{source: "watch", from: m.fork().Uint64N(m.store.Revision() + 1)}) // before the end
		watching.Go(func() {
			for c, err := range m.store.Watch(t.Context(), s.from) {
				if err != nil {
					t.Errorf("Watch from %d = %v", s.from, err)
					return
				}
				if c.Curr.GroupVersionKind == node() {
					return
				}
				s.changes = append(s.changes, c)
			}
		})
	}
	return func() {
		create(t, m.store, object(node(), "", "end", ""))
		watching.Wait()
	}
}

// TestLoweredSizes runs the model and the suites with buffers that are never kept, and watches
// that take one change at a time.
func TestLoweredSizes(t *testing.T) {
	t.Parallel()
	testmain.Lowered(t, "^(TestModel|TestStoreSuite|TestControllerSuite)$")
}
