// SPDX-License-Identifier: Apache-2.0

package memory_test

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/memory"
)

func TestCreateSetsWhatIsTheStores(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		given := object(widgetAlias(), "default", "foo", "1")
		given.ResourceVersion, given.Generation = "77", 9
		given.Domain, given.UID = "cluster.local", "u1"
		revision := create(t, s, given)
		got := s.Get(widget(), "foo", "default")
		want := given
		want.GroupVersionKind = widget()
		want.ResourceVersion, want.Generation, want.CreationTimestamp = "1", 1, time.Now()
		if revision != "1" || !got.Equal(want) {
			t.Errorf("Create = %q, stored %+v, want %+v", revision, got, want)
		}
		if got.Spec != given.Spec {
			t.Error("the spec was copied")
		}
		old := object(widget(), "default", "old", "1")
		old.CreationTimestamp = time.Unix(1000, 0)
		create(t, s, old)
		if got := s.Get(widget(), "old", "default").CreationTimestamp; !got.Equal(time.Unix(1000, 0)) {
			t.Errorf("a given creation time became %v", got)
		}
	})
}

func TestErrors(t *testing.T) {
	s := newStore()
	create(t, s, object(widget(), "default", "foo", "1"))
	create(t, s, object(node(), "", "n1", "1"))
	stale, empty := "7", ""
	conflicting := object(widget(), "default", "foo", "2")
	conflicting.ResourceVersion = stale
	unknown := widget()
	unknown.Version = "v2"
	status := object(gadget(), "default", "foo", "1")
	status.Status = wrapperspb.String("ready")
	create(t, s, object(gadget(), "default", "foo", "1"))

	second := func(_ string, err error) error { return err }
	for _, tt := range []struct {
		err  error
		want error
		text string
	}{
		{second(s.Create(object(widget(), "default", "foo", "2"))), configstore.ErrAlreadyExists, "create Widget default/foo: already exists"},
		{second(s.Create(object(node(), "", "n1", "2"))), configstore.ErrAlreadyExists, "create Node n1: already exists"},
		{second(s.Update(object(widget(), "default", "bar", "2"))), configstore.ErrNotFound, "update Widget default/bar: not found"},
		{second(s.UpdateStatus(object(widget(), "x", "foo", "2"))), configstore.ErrNotFound, "update status of Widget x/foo: not found"},
		{s.Delete(widget(), "bar", "default", nil), configstore.ErrNotFound, "delete Widget default/bar: not found"},
		{second(s.Update(conflicting)), configstore.ErrConflict, `update Widget default/foo: conflicting resource version: "7" is given, "1" is stored`},
		{s.Delete(widget(), "foo", "default", &stale), configstore.ErrConflict, `delete Widget default/foo: conflicting resource version: "7" is given, "1" is stored`},
		{s.Delete(widget(), "foo", "default", &empty), configstore.ErrConflict, `delete Widget default/foo: conflicting resource version: "" is given, "1" is stored`},
		{second(s.Create(object(unknown, "default", "foo", "2"))), configstore.ErrUnknownKind, "create Widget default/foo: unknown kind test.example.com/v2/Widget: Widget has the versions v1, v1alpha1"},
		{s.Delete(unknown, "foo", "default", nil), configstore.ErrUnknownKind, "delete Widget default/foo: unknown kind test.example.com/v2/Widget: Widget has the versions v1, v1alpha1"},
		{second(s.Create(configstore.Config{Meta: configstore.Meta{Name: "foo", Namespace: "default"}, Spec: wrapperspb.Bool(true)})), configstore.ErrUnknownKind, "create default/foo: unknown kind: none is given, and not exactly one has specs of type *wrapperspb.BoolValue"},
		{second(s.Create(object(widget(), "default", "new", "bad"))), configstore.ErrInvalid, `create: Widget default/new is invalid: spec: must not be "bad"`},
		{second(s.Update(object(widget(), "default", "foo", "bad"))), configstore.ErrInvalid, `update: Widget default/foo is invalid: spec: must not be "bad"`},
		{second(s.Create(object(node(), "default", "n2", "1"))), configstore.ErrInvalid, `create: Node default/n2 is invalid: metadata.namespace: must be empty for a cluster-scoped kind, is "default"`},
		{second(s.UpdateStatus(status)), configstore.ErrInvalid, "update status of: Gadget default/foo is invalid: status: the kind has none"},
	} {
		if !errors.Is(tt.err, tt.want) || tt.err.Error() != tt.text {
			t.Errorf("got %q, want %q", tt.err, tt.text)
		}
	}
	if got := s.Revision(); got != 3 {
		t.Errorf("Revision() = %d after writes that failed, want 3", got)
	}
	var invalid *configstore.ValidationError
	_, err := s.Create(object(widget(), "default", "new", "bad"))
	if !errors.As(err, &invalid) || len(invalid.Violations) != 1 {
		t.Errorf("%v is no ValidationError with one violation", err)
	}
}

func TestUpdateThatChangesNothing(t *testing.T) {
	s := newStore()
	c := memory.NewController(s)
	var events int
	full := object(widget(), "default", "foo", "1")
	full.Labels = map[string]string{"a": "b"}
	full.Status = wrapperspb.String("ready")
	full.OwnerReferences = []configstore.OwnerReference{{Kind: "Owner", Name: "o"}}
	create(t, s, full)
	c.RegisterEventHandler(widget(), func(_, _ configstore.Config, e configstore.Event) {
		if e != configstore.EventAdd {
			events++
		}
	})
	stored := s.Get(widget(), "foo", "default")
	same := stored.Clone()
	same.Generation, same.CreationTimestamp = 99, time.Time{}
	same.Annotations = map[string]string{}
	for _, resourceVersion := range []string{"", "1"} {
		same.ResourceVersion = resourceVersion
		if got := update(t, s, same); got != "1" {
			t.Errorf("Update that changes nothing = %q, want the revision 1", got)
		}
	}
	if got, err := s.UpdateStatus(same); got != "1" || err != nil {
		t.Errorf("UpdateStatus that changes nothing = %q, %v, want the revision 1", got, err)
	}
	c.Drain()
	if s.Get(widget(), "foo", "default") != stored || s.Revision() != 1 || events != 0 {
		t.Errorf("revision %d and %d events after updates that change nothing", s.Revision(), events)
	}
}

func TestUpdateChanges(t *testing.T) {
	for name, f := range map[string]func(*configstore.Config){
		"labels":      func(c *configstore.Config) { c.Labels = map[string]string{"a": "c"} },
		"annotations": func(c *configstore.Config) { c.Annotations = map[string]string{"a": "b"} },
		"uid":         func(c *configstore.Config) { c.UID = "u" },
		"domain":      func(c *configstore.Config) { c.Domain = "d" },
		"owners":      func(c *configstore.Config) { c.OwnerReferences = []configstore.OwnerReference{{Name: "o"}} },
		"status":      func(c *configstore.Config) { c.Status = wrapperspb.String("ready") },
		"creation":    func(c *configstore.Config) { c.CreationTimestamp = time.Unix(5, 0) },
		"spec":        func(c *configstore.Config) { c.Spec = wrapperspb.String("2") },
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore()
			create(t, s, object(widget(), "default", "foo", "1"))
			stored := s.Get(widget(), "foo", "default")
			want := stored.Clone()
			f(&want)
			if got := update(t, s, want); got != "2" {
				t.Errorf("Update = %q, want 2", got)
			}
			want.ResourceVersion = "2"
			if name == "spec" {
				want.Generation = 2
			}
			if got := s.Get(widget(), "foo", "default"); !got.Equal(want) {
				t.Errorf("stored %+v, want %+v", got, want)
			}
		})
	}
}

func TestUpdateKeepsCreationTime(t *testing.T) {
	s := newStore()
	create(t, s, object(widget(), "default", "foo", "1"))
	created := s.Get(widget(), "foo", "default").CreationTimestamp
	update(t, s, object(widget(), "default", "foo", "2"))
	if got := s.Get(widget(), "foo", "default").CreationTimestamp; !got.Equal(created) || got.IsZero() {
		t.Errorf("creation time %v became %v", created, got)
	}
}

func TestUpdateStatusChangesOnlyStatus(t *testing.T) {
	s := newStore()
	c := object(widget(), "default", "foo", "1")
	c.Labels = map[string]string{"a": "b"}
	create(t, s, c)
	want := s.Get(widget(), "foo", "default").Clone()
	other := object(widgetAlias(), "default", "foo", "2")
	other.Status, other.Domain = wrapperspb.String("ready"), "d"
	revision, err := s.UpdateStatus(other)
	want.Status, want.ResourceVersion = other.Status, "2"
	if got := s.Get(widget(), "foo", "default"); err != nil || revision != "2" || !got.Equal(want) {
		t.Errorf("UpdateStatus = %q, %v, stored %+v, want %+v", revision, err, got, want)
	}
	// A spec, even none, does not matter; the status may be taken away.
	revision, err = s.UpdateStatus(configstore.Config{Meta: configstore.Meta{GroupVersionKind: widget(), Name: "foo", Namespace: "default", ResourceVersion: "2"}})
	if err != nil || revision != "3" || s.Get(widget(), "foo", "default").Status != nil {
		t.Errorf("UpdateStatus without a status = %q, %v", revision, err)
	}
}

func TestAliases(t *testing.T) {
	s := newStore()
	c := memory.NewController(s)
	var got []string
	c.RegisterEventHandler(widgetAlias(), func(_, curr configstore.Config, e configstore.Event) {
		got = append(got, fmt.Sprint(e, " ", curr.GroupVersionKind, " ", value(&curr)))
	})
	create(t, s, object(widgetAlias(), "default", "foo", "1"))
	if _, err := s.Create(object(widget(), "default", "foo", "1")); !errors.Is(err, configstore.ErrAlreadyExists) {
		t.Errorf("Create of the other version = %v", err)
	}
	for _, kind := range []configstore.GroupVersionKind{widget(), widgetAlias()} {
		if c := s.Get(kind, "foo", "default"); c == nil || c.GroupVersionKind != widget() {
			t.Errorf("Get(%s) = %+v", kind, c)
		}
		if n := len(s.List(kind, "default")); n != 1 {
			t.Errorf("List(%s) has %d objects", kind, n)
		}
		if s.Snapshot().Get(kind, "foo", "default") == nil {
			t.Errorf("Snapshot().Get(%s) = nil", kind)
		}
	}
	update(t, s, object(widgetAlias(), "default", "foo", "2"))
	if err := s.Delete(widgetAlias(), "foo", "default", nil); err != nil {
		t.Error(err)
	}
	c.Drain()
	kind := widget().String()
	want := []string{"add " + kind + " 1", "update " + kind + " 2", "delete " + kind + " 2"}
	if !slices.Equal(got, want) {
		t.Errorf("events %q, want %q", got, want)
	}
}

func TestSkipValidation(t *testing.T) {
	var warned []string
	opts := memory.Options{OnWarning: func(key configstore.ConfigKey, w []configstore.Violation) {
		warned = append(warned, key.Object()+" "+w[0].String())
	}}
	s := memory.Make(testSchemas(), opts)
	create(t, s, object(widget(), "default", "odd", "odd"))
	if _, err := s.Apply(configstore.Mutation{Op: configstore.OpCreate, Config: object(widget(), "default", "odd2", "odd")}); err != nil {
		t.Error(err)
	}
	if _, err := s.Create(object(widget(), "default", "odd", "odd")); err == nil {
		t.Error("a second Create succeeded")
	}
	if want := []string{"Widget default/odd spec: is odd", "Widget default/odd2 spec: is odd"}; !slices.Equal(warned, want) {
		t.Errorf("warnings %q, want %q", warned, want)
	}
	opts.SkipValidation = true
	s = memory.Make(testSchemas(), opts)
	create(t, s, object(widget(), "default", "foo", "bad"))
	update(t, s, object(widget(), "default", "foo", "odd"))
	if len(warned) != 2 {
		t.Errorf("warnings %q without validation", warned)
	}
	wrong := object(widget(), "default", "wrong", "")
	wrong.Spec = wrapperspb.Bool(true)
	nameless := object(widget(), "default", "", "1")
	specless := object(widget(), "default", "specless", "")
	specless.Spec = nil
	for _, c := range []configstore.Config{wrong, nameless, specless} {
		if _, err := s.Create(c); !errors.Is(err, configstore.ErrInvalid) {
			t.Errorf("Create of a misshapen object = %v, want ErrInvalid", err)
		}
	}
}

func names(configs []*configstore.Config) string {
	var out []string
	for _, c := range configs {
		out = append(out, c.Namespace+"/"+c.Name)
	}
	return strings.Join(out, " ")
}

func TestList(t *testing.T) {
	s := newStore()
	for _, key := range []string{"b/2", "a/10", "b/1", "a/2", "c/1", "a/1"} {
		ns, name, _ := strings.Cut(key, "/")
		create(t, s, object(widget(), ns, name, "1"))
	}
	for ns, want := range map[string]string{"": "a/1 a/10 a/2 b/1 b/2 c/1", "a": "a/1 a/10 a/2", "b": "b/1 b/2", "d": ""} {
		if got := names(s.List(widget(), ns)); got != want {
			t.Errorf("List(%q) = %s, want %s", ns, got, want)
		}
	}
	if s.List(gadget(), "") != nil || s.List(configstore.GroupVersionKind{Kind: "None"}, "") != nil {
		t.Error("an empty list is not nil")
	}
	list := s.List(widget(), "a")
	create(t, s, object(widget(), "b", "3", "1"))
	if again := s.List(widget(), "a"); &again[0] != &list[0] {
		t.Error("a change of another namespace made a new list")
	}
	if all := s.List(widget(), ""); cap(list) != len(list) || cap(all) != len(all) {
		t.Error("an append to a shared list would write to it")
	}
	update(t, s, object(widget(), "a", "10", "2"))
	if err := s.Delete(widget(), "1", "a", nil); err != nil {
		t.Error(err)
	}
	if got := names(list); got != "a/1 a/10 a/2" || value(list[1]) != "1" {
		t.Errorf("a list that was handed out changed to %s", got)
	}
	if list = s.List(widget(), "a"); names(list) != "a/10 a/2" || value(list[0]) != "2" {
		t.Errorf("List(a) = %s after changes", names(list))
	}
	for _, name := range []string{"10", "2"} {
		if err := s.Delete(widget(), name, "a", nil); err != nil {
			t.Error(err)
		}
	}
	if s.List(widget(), "a") != nil {
		t.Error("the list of an emptied namespace is not nil")
	}
	create(t, s, object(widget(), "a", "9", "1"))
	if got := names(s.List(widget(), "a")); got != "a/9" {
		t.Errorf("List(a) = %s after the namespace came back", got)
	}
}

func TestSelect(t *testing.T) {
	s := newStore()
	add := func(ns, name string, labels ...string) {
		c := object(widget(), ns, name, "1")
		c.Labels = map[string]string{}
		for _, l := range labels {
			k, v, _ := strings.Cut(l, "=")
			c.Labels[k] = v
		}
		create(t, s, c)
	}
	add("a", "1", "app=x", "version=1")
	add("a", "2", "app=x")
	add("a", "3", "app=y", "version=1")
	add("b", "1", "app=x", "empty=")
	add("b", "2")
	for _, tt := range []struct {
		ns       string
		selector map[string]string
		want     string
	}{
		{"a", map[string]string{"app": "x"}, "a/1 a/2"},
		{"a", map[string]string{"app": "x", "version": "1"}, "a/1"},
		{"a", nil, "a/1 a/2 a/3"},
		{"", map[string]string{"app": "x"}, "a/1 a/2 b/1"},
		{"", map[string]string{"empty": ""}, "b/1"},
		{"c", nil, ""},
	} {
		if got := names(slices.Collect(configstore.Select(s, widget(), tt.ns, tt.selector))); got != tt.want {
			t.Errorf("Select(%q, %v) = %s, want %s", tt.ns, tt.selector, got, tt.want)
		}
		if got := names(slices.Collect(configstore.Select(s.Snapshot(), widget(), tt.ns, tt.selector))); got != tt.want {
			t.Errorf("Snapshot().Select(%q, %v) = %s, want %s", tt.ns, tt.selector, got, tt.want)
		}
	}
	for c := range configstore.Select(s, widget(), "a", nil) {
		if c.Name != "1" {
			t.Errorf("Select begins with %s", c.Name)
		}
		break
	}
}

// Lists are right however much happened between two of them: what writers note for
// lists that are not read is bounded.
func TestListAfterManyChanges(t *testing.T) {
	s := memory.Make(testSchemas())
	want := map[string]string{}
	churn := func(rounds, keep int) {
		for i := range rounds {
			name := fmt.Sprintf("n%04d", i%500)
			key := "a/" + name
			switch _, exists := want[key]; {
			case !exists:
				create(t, s, object(widget(), "a", name, fmt.Sprint(i)))
				want[key] = fmt.Sprint(i)
			case i%5 < keep:
				update(t, s, object(widget(), "a", name, fmt.Sprint(i)))
				want[key] = fmt.Sprint(i)
			default:
				if err := s.Delete(widget(), name, "a", nil); err != nil {
					t.Fatal(err)
				}
				delete(want, key)
			}
		}
	}
	check := func(ns string) {
		t.Helper()
		got := map[string]string{}
		list := s.List(widget(), ns)
		for _, c := range list {
			got[c.Namespace+"/"+c.Name] = value(c)
		}
		if diff := cmp.Diff(want, got); diff != "" || len(got) != len(list) {
			t.Fatalf("List(%q) differs (-want +got):\n%s", ns, diff)
		}
		if !slices.IsSortedFunc(list, func(a, b *configstore.Config) int { return strings.Compare(a.Name, b.Name) }) {
			t.Fatalf("List(%q) is not sorted", ns)
		}
	}
	for _, keep := range []int{5, 0, 2, 4} {
		churn(5000, keep)
		check("a")
		churn(3, keep)
		check("")
		churn(700, keep)
		check("")
		check("a")
	}
}

// The revision grows by one with each change, and its decimal form is the ResourceVersion of the
// stored object.
func TestRevisionsAreConsecutive(t *testing.T) {
	s := newStore()
	for i := range uint64(3) {
		want := strconv.FormatUint(i+1, 10)
		if revision := create(t, s, object(widget(), "default", "w"+want, "1")); revision != want || s.Revision() != i+1 {
			t.Errorf("Create = %q, Revision() = %d, want %s", revision, s.Revision(), want)
		}
	}
}
