// SPDX-License-Identifier: Apache-2.0

package memory_test

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/pilotkit/pilotkit/configstore"
)

// history is the model: the content at each revision, as a map with its past.
type history struct {
	// byKey has the versions of each object, oldest first; a nil Config is an
	// absence.
	byKey   map[configstore.ConfigKey][]modelVersion
	changes []configstore.Change
}

type modelVersion struct {
	revision uint64
	config   *configstore.Config
}

// at returns an object at a revision, or nil.
func (h *history) at(key configstore.ConfigKey, revision uint64) *configstore.Config {
	past := h.byKey[key]
	i := sort.Search(len(past), func(i int) bool { return past[i].revision > revision })
	if i == 0 {
		return nil
	}
	return past[i-1].config
}

// list returns the resource versions of a list at a revision.
func (h *history) list(kind configstore.GroupVersionKind, namespace string, revision uint64) []string {
	var found []*configstore.Config
	for key := range h.byKey {
		if key.Kind == kind && (namespace == configstore.NamespaceAll || key.Namespace == namespace) {
			if c := h.at(key, revision); c != nil {
				found = append(found, c)
			}
		}
	}
	slices.SortFunc(found, func(a, b *configstore.Config) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	return versions(found...)
}

// check replays the changes that a watch from the beginning sees.
func (m *model) check(t *testing.T) {
	t.Helper()
	h := &history{byKey: map[configstore.ConfigKey][]modelVersion{}}
	for c, err := range m.store.Watch(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		h.add(t, c)
		if c.Revision == m.store.Revision() {
			break
		}
	}
	m.checkResults(t, h)
	for _, r := range m.reads {
		h.checkRead(t, r)
	}
	for _, s := range m.streams {
		h.checkStream(t, s)
	}
}

// add appends a change, which must follow from the content before it.
func (h *history) add(t *testing.T, c configstore.Change) {
	t.Helper()
	key, last := c.Curr.Key(), uint64(len(h.changes))
	before := h.at(key, last)
	if c.Revision != last+1 {
		t.Fatalf("revision %d follows %d", c.Revision, last)
	}
	next := modelVersion{revision: c.Revision, config: c.Curr}
	ok := before != nil
	switch c.Event {
	case configstore.EventAdd:
		ok = before == nil && c.Old == nil && c.Curr.Generation == 1
	case configstore.EventUpdate:
		grown := int64(0)
		if ok && !proto.Equal(before.Spec, c.Curr.Spec) {
			grown = 1
		}
		ok = ok && c.Old == before && c.Curr.Generation == before.Generation+grown &&
			c.Curr.CreationTimestamp.Equal(before.CreationTimestamp)
	case configstore.EventDelete:
		ok = ok && c.Old == nil && c.Curr == before
		next.config = nil
	}
	if next.config != nil && next.config.ResourceVersion != strconv.FormatUint(c.Revision, 10) {
		ok = false
	}
	if !ok {
		t.Fatalf("change %+v does not follow from %+v", c, before)
	}
	h.byKey[key] = append(h.byKey[key], next)
	h.changes = append(h.changes, c)
}

// checkResults compares every operation with the model at the moments when it can have taken
// effect, and every change with the operation that caused it.
func (m *model) checkResults(t *testing.T, h *history) {
	t.Helper()
	// Deletes return no revision: they come last and take, the most urgent first, the remaining
	// revisions.
	slices.SortStableFunc(m.results, func(a, b result) int {
		isDelete := func(r result) int {
			if r.op == configstore.OpDelete {
				return 1
			}
			return 0
		}
		return cmp.Or(cmp.Compare(isDelete(a), isDelete(b)), cmp.Compare(a.to, b.to))
	})
	claimed := make([]bool, len(h.changes)+1)
	for _, r := range m.results {
		at, ok := h.explain(r, claimed)
		if !ok {
			t.Fatalf("no moment between the revisions %d and %d explains %s", r.from, r.to, r)
		}
		for _, revision := range at {
			claimed[revision] = true
		}
	}
	for revision, ok := range claimed {
		if revision > 0 && !ok && h.changes[revision-1].Curr.GroupVersionKind != node() {
			t.Fatalf("no operation made revision %d", revision)
		}
	}
}

func (r result) String() string {
	if r.batch != nil {
		return fmt.Sprintf("a batch of %d, which returned %s, %v", len(r.batch), r.revision, r.err)
	}
	return fmt.Sprintf("%v %s at %q, which returned %q, %v", r.op, r.config.Key(), r.config.ResourceVersion, r.revision, r.err)
}

// explain finds a moment for which the model gives the result, and returns the revisions that the
// operation made then and that belong to no other operation.
func (h *history) explain(r result, claimed []bool) (made []uint64, ok bool) {
	for before := r.from; before <= r.to; before++ {
		made, ok = h.simulate(r, before)
		if ok && !slices.ContainsFunc(made, func(revision uint64) bool { return claimed[revision] }) {
			return made, true
		}
	}
	return nil, false
}

// simulate plays an operation on the content at a revision and reports whether its result is the
// observed one and, if it succeeded, its changes are those of the store.
func (h *history) simulate(r result, before uint64) (made []uint64, ok bool) {
	batch := r.batch
	if batch == nil {
		batch = []configstore.Mutation{{Op: r.op, Config: r.config}}
	}
	own := map[configstore.ConfigKey]*configstore.Config{}
	next, version := before, ""
	matching := true
	for _, x := range batch {
		cur, mine := own[x.Config.Key()]
		if !mine {
			cur = h.at(x.Config.Key(), before)
		}
		changed, err := outcome(x, cur)
		if err != nil {
			return nil, r.err != nil && errors.Is(r.err, err)
		}
		if !changed {
			version = cur.ResourceVersion
			continue
		}
		next++
		version = strconv.FormatUint(next, 10)
		made = append(made, next)
		matching = matching && h.matches(x, next)
		own[x.Config.Key()] = after(x, cur, version)
	}
	switch {
	case r.err != nil || !matching || next > r.to:
		return nil, false
	case r.batch != nil:
		return made, r.revision == strconv.FormatUint(next, 10)
	default:
		return made, r.op == configstore.OpDelete || r.revision == version
	}
}

// outcome says whether a write changes an object.
func outcome(x configstore.Mutation, cur *configstore.Config) (changed bool, err error) {
	c := x.Config
	if x.Op == configstore.OpUpsert && cur == nil && c.ResourceVersion == "" {
		x.Op = configstore.OpCreate
	}
	switch {
	case x.Op == configstore.OpCreate && cur != nil:
		return false, configstore.ErrAlreadyExists
	case x.Op == configstore.OpCreate:
		return true, nil
	case cur == nil:
		return false, configstore.ErrNotFound
	case c.ResourceVersion != "" && c.ResourceVersion != cur.ResourceVersion:
		return false, configstore.ErrConflict
	case x.Op == configstore.OpDelete:
		return true, nil
	case x.Op == configstore.OpUpdateStatus:
		return !sameText(cur.Status, c.Status), nil
	}
	// The two are compared as a whole, with the fields set by the store copied.
	c.ResourceVersion, c.Generation, c.CreationTimestamp = cur.ResourceVersion, cur.Generation, cur.CreationTimestamp
	return !c.Equal(*cur), nil
}

// after returns the object that a write makes of cur, as far as outcome looks.
func after(x configstore.Mutation, cur *configstore.Config, version string) *configstore.Config {
	c := x.Config
	switch x.Op {
	case configstore.OpDelete:
		return nil
	case configstore.OpUpdateStatus:
		c = *cur
		c.Status = x.Config.Status
	case configstore.OpCreate, configstore.OpUpdate, configstore.OpUpsert:
	}
	c.ResourceVersion = version
	return &c
}

func sameText(a, b proto.Message) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return proto.Equal(a, b)
}

// matches reports whether the change of a revision is the one that a write makes.
func (h *history) matches(x configstore.Mutation, revision uint64) bool {
	if revision > uint64(len(h.changes)) {
		return false
	}
	c := h.changes[revision-1]
	if c.Curr.Key() != x.Config.Key() {
		return false
	}
	switch x.Op {
	case configstore.OpCreate:
		return c.Event == configstore.EventAdd && c.Curr.Spec == x.Config.Spec
	case configstore.OpUpdate:
		return c.Event == configstore.EventUpdate && c.Curr.Spec == x.Config.Spec
	case configstore.OpUpsert:
		return c.Event != configstore.EventDelete && c.Curr.Spec == x.Config.Spec
	case configstore.OpUpdateStatus:
		return c.Event == configstore.EventUpdate && c.Curr.Status == x.Config.Status && c.Curr.Spec == c.Old.Spec
	default:
		return c.Event == configstore.EventDelete
	}
}

// checkRead demands that the result of a read is the content at one moment.
func (h *history) checkRead(t *testing.T, r read) {
	t.Helper()
	for revision := r.from; revision <= r.to; revision++ {
		want := h.list(r.kind, r.namespace, revision)
		if r.name != "" {
			want = versions(h.at(configstore.ConfigKey{Kind: r.kind, Namespace: r.namespace, Name: r.name}, revision))
		}
		if slices.Equal(r.versions, want) {
			return
		}
	}
	t.Errorf("%s of %s %s/%s between the revisions %d and %d = %v; it is, in turn:",
		r.source, r.kind.Kind, r.namespace, r.name, r.from, r.to, r.versions)
	for revision := r.from; revision <= r.to; revision++ {
		t.Logf("%d: %v, by %v of %s", revision, h.list(r.kind, r.namespace, revision),
			h.changes[revision-1].Event, h.changes[revision-1].Curr.Key())
	}
	t.FailNow()
}

// checkStream demands that a handler or a watch saw one complete timeline.
func (h *history) checkStream(t *testing.T, s *stream) {
	t.Helper()
	changes := s.changes
	from := s.from
	if s.replayed {
		if len(changes) == 0 {
			return // cancelled, or nothing to see
		}
		n := h.replayed(s)
		if n < 0 {
			t.Fatalf("what the %s of %v was called with first is the content at no revision", s.source, s.kinds)
		}
		from, changes = h.startOf(s, n), changes[n:]
	}
	i := 0
	for _, want := range h.changes[from:] {
		kind := want.Curr.GroupVersionKind
		if kind == node() || s.kinds != nil && !slices.Contains(s.kinds, kind) {
			continue
		}
		if i == len(changes) {
			if !s.cancelled {
				t.Fatalf("the %s missed the end from revision %d", s.source, want.Revision)
			}
			return
		}
		got := changes[i]
		if got.Event != want.Event || got.Curr.ResourceVersion != want.Curr.ResourceVersion || (got.Old == nil) != (want.Old == nil) {
			t.Fatalf("the %s saw %v %s instead of %v %s, revision %d", s.source, got.Event, got.Curr.Key(), want.Event, want.Curr.Key(), want.Revision)
		}
		i++
	}
	if i != len(changes) {
		t.Fatalf("the %s saw %d changes too many", s.source, len(changes)-i)
	}
}

// replayed returns how many changes at the beginning of a stream are the objects
// that existed when it was registered: the longest run of Adds that is the content
// at a revision.
func (h *history) replayed(s *stream) int {
	for n := h.adds(s); n >= 0; n-- {
		if h.startOf(s, n) != notFound {
			return n
		}
	}
	return -1
}

func (h *history) adds(s *stream) int {
	n := 0
	for n < len(s.changes) && s.changes[n].Event == configstore.EventAdd {
		n++
	}
	return n
}

const notFound = ^uint64(0)

// startOf returns a revision whose content is the first n changes of a stream and
// whose next change of its kinds is the one after them.
func (h *history) startOf(s *stream, n int) uint64 {
	seen := make([]*configstore.Config, n)
	for i, c := range s.changes[:n] {
		seen[i] = c.Curr
	}
	got := versions(seen...)
	for revision := range uint64(len(h.changes) + 1) {
		want := []string{}
		for _, kind := range s.kinds {
			want = append(want, h.list(kind, configstore.NamespaceAll, revision)...)
		}
		if slices.Equal(got, want) && h.continues(s, n, revision) {
			return revision
		}
	}
	return notFound
}

// continues reports whether the next change of a stream's kinds after a revision
// is the stream's change n. A stream that ends there ends with the history, or
// was cancelled: an object that came and went leaves the content as it was.
func (h *history) continues(s *stream, n int, revision uint64) bool {
	for _, c := range h.changes[revision:] {
		if c.Curr.GroupVersionKind == node() || !slices.Contains(s.kinds, c.Curr.GroupVersionKind) {
			continue
		}
		if n == len(s.changes) {
			return s.cancelled
		}
		return s.changes[n].Curr.ResourceVersion == c.Curr.ResourceVersion
	}
	return n == len(s.changes)
}
