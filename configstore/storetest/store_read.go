// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"fmt"
	"slices"

	"github.com/pilotkit/pilotkit/configstore"
)

// Where promises are made.
const (
	promisedStore     = "configstore.ConfigStore"
	promisedReads     = "package configstore, Writes: reads see what was written"
	promisedOwnership = "package configstore, Immutability"
	promisedErrors    = "package configstore, Errors"
	promisedAtomic    = "package configstore, Writes: checking and writing are one atomic step"
	promisedConflict  = "package configstore, Writes: resource versions"
	promisedNoop      = "package configstore, Writes: what changes nothing"
	promisedMeta      = "configstore.Meta"
	promisedEvents    = "package configstore, Events"
	promisedLife      = "configstore.ConfigStoreCache, Run and HasSynced"
	promisedBatch     = "configstore.BatchWriter"
	promisedWatcher   = "configstore.Watcher"
)

func readChecks() []check {
	return []check{
		{Name: "Schemas", Promise: "Schemas returns the kinds that the store keeps", Source: promisedStore, Run: checkSchemas},
		{Name: "Get/Absent", Promise: "Get returns nil for what does not exist", Source: promisedStore, Run: checkGetAbsent},
		{Name: "Get/Written", Promise: "when a write has returned, Get sees it", Source: promisedReads, Run: checkGetWritten},
		{Name: "Get/Keys", Promise: "an object is named by its kind, namespace and name, and by nothing else", Source: promisedStore, Run: checkKeys},
		{Name: "Get/Alias", Promise: "a kind may be named by any of its versions; objects are kept under the canonical one", Source: promisedStore, Run: checkAlias},
		{Name: "Get/ClusterScoped", Promise: "objects of cluster-scoped kinds have no namespace", Source: promisedStore, Run: checkClusterScoped},
		{Name: "List/Written", Promise: "when a write has returned, List sees it", Source: promisedReads, Run: checkListWritten},
		{Name: "List/Sorted", Promise: "lists are sorted by namespace and name", Source: promisedStore, Run: checkListSorted},
		{Name: "List/Namespace", Promise: "List returns the objects of the namespace, or of all for NamespaceAll; nil if there are none", Source: promisedStore, Run: checkListNamespace},
		{Name: "List/Snapshot", Promise: "a list that was handed out does not change any more", Source: promisedOwnership, Run: checkListSnapshot},
		{Name: "Get/Shared", Promise: "Get and List hand out the stored objects themselves", Source: promisedOwnership, Run: checkShared},
	}
}

func checkSchemas(s *suite) {
	schemas := s.store.Schemas()
	for _, kind := range []configstore.GroupVersionKind{widgetKind(), widgetAlias(), gadgetKind(), planetKind()} {
		if !schemas.Has(kind) {
			s.Broken("Schemas().Has(%s) = false, want true", kind)
		}
	}
	if schemas.Has(unknownKind()) {
		s.Broken("Schemas().Has(%s) = true, want false", unknownKind())
	}
}

func checkGetAbsent(s *suite) {
	s.create(widget("default", "foo", "1"))
	for _, c := range []configstore.Config{
		widget("default", "bar", ""),
		widget("other", "foo", ""),
		widget("", "foo", ""),
		gadget("default", "foo", ""),
		object(unknownKind(), "default", "foo", ""),
	} {
		s.expectAbsent(c)
	}
}

func checkGetWritten(s *suite) {
	c := widget("default", "foo", "1")
	c.Labels = map[string]string{"app": "foo"}
	c.Annotations = map[string]string{"note": "bar"}
	c.Domain = "cluster.local"
	s.create(c)
	got := s.get(c)
	if got.Key() != c.Key() {
		s.Broken("Get returned %s, want %s", got.Key(), c.Key())
	}
	if valueOf(got) != "1" || got.Labels["app"] != "foo" || got.Annotations["note"] != "bar" || got.Domain != s.domain(c.Domain) {
		s.Broken("Get returned %+v, want what was created: %+v", *got, c)
	}
	s.update(widget("default", "foo", "2"))
	s.expectValue(c, "2")
	s.remove(c)
	s.expectAbsent(c)
}

func checkKeys(s *suite) {
	objects := []configstore.Config{
		widget("a", "bc", "1"), widget("ab", "c", "2"), gadget("a", "bc", "3"), widget("bc", "a", "4"), widget("b", "bc", "5"),
	}
	for _, c := range objects {
		s.create(c)
	}
	for i, c := range objects {
		s.expectValue(c, fmt.Sprint(i+1))
	}
	s.remove(objects[0])
	s.expectAbsent(objects[0])
	for i, c := range objects[1:] {
		s.expectValue(c, fmt.Sprint(i+2))
	}
}

func checkAlias(s *suite) {
	alias := object(widgetAlias(), "default", "foo", "1")
	s.create(alias)
	for _, c := range []configstore.Config{alias, widget("default", "foo", "")} {
		s.expectValue(c, "1")
		if got := s.get(c).GroupVersionKind; got != widgetKind() {
			s.Broken("the object is handed out as %s, want %s", got, widgetKind())
		}
		s.expectList(c.GroupVersionKind, "default", "default/foo")
	}
	s.update(object(widgetAlias(), "default", "foo", "2"))
	s.expectValue(widget("default", "foo", ""), "2")
	if list := s.store.List(widgetKind(), ""); len(list) != 1 || list[0].GroupVersionKind != widgetKind() {
		s.Broken("an update under an alias left %d objects, want one of kind %s", len(list), widgetKind())
	}
	s.remove(alias)
	s.expectAbsent(widget("default", "foo", ""))
}

func checkClusterScoped(s *suite) {
	earth := object(planetKind(), "", "earth", "1")
	s.create(earth)
	s.create(object(planetKind(), "", "mars", "1"))
	s.expectValue(earth, "1")
	s.expectList(planetKind(), configstore.NamespaceAll, "/earth", "/mars")
	s.update(object(planetKind(), "", "earth", "2"))
	s.expectValue(earth, "2")
	s.remove(earth)
	s.expectAbsent(earth)
	s.expectList(planetKind(), configstore.NamespaceAll, "/mars")
}

func checkListWritten(s *suite) {
	foo := widget("default", "foo", "1")
	s.create(foo)
	s.expectList(widgetKind(), "default", "default/foo")
	s.expectList(widgetKind(), configstore.NamespaceAll, "default/foo")
	s.update(widget("default", "foo", "2"))
	for _, namespace := range []string{"default", configstore.NamespaceAll} {
		if list := s.store.List(widgetKind(), namespace); len(list) != 1 || valueOf(list[0]) != "2" {
			s.Broken("after an update List(Widget, %q) has %d objects with the first %s, want one with the value 2",
				namespace, len(list), describe(first(list)))
		}
	}
	s.create(widget("default", "bar", "1"))
	s.expectList(widgetKind(), "default", "default/bar", "default/foo")
	s.expectList(widgetKind(), configstore.NamespaceAll, "default/bar", "default/foo")
	s.remove(foo)
	s.expectList(widgetKind(), "default", "default/bar")
	s.expectList(widgetKind(), configstore.NamespaceAll, "default/bar")
}

func first(list []*configstore.Config) *configstore.Config {
	if len(list) == 0 {
		return nil
	}
	return list[0]
}

func checkListSorted(s *suite) {
	var want []string
	for i := range 60 {
		// 37 is prime to 60: every number once, far from sorted.
		n := i * 37 % 60
		namespace, name := fmt.Sprintf("ns-%d", n%4), fmt.Sprintf("w%02d", n)
		s.create(widget(namespace, name, "1"))
		want = append(want, namespace+"/"+name)
	}
	// By text "a-b" sorts before "a/"; by namespace "a" comes first.
	s.create(widget("a-b", "x", "1"))
	s.create(widget("a", "x", "1"))
	slices.Sort(want)
	want = append([]string{"a/x", "a-b/x"}, want...)
	s.expectList(widgetKind(), configstore.NamespaceAll, want...)
	s.update(widget("ns-1", "w01", "2"))
	s.remove(widget("ns-1", "w05", ""))
	s.create(widget("ns-1", "w05", "2"))
	s.expectList(widgetKind(), configstore.NamespaceAll, want...)
}

func checkListNamespace(s *suite) {
	s.create(widget("one", "a", "1"))
	s.create(widget("one", "b", "1"))
	s.create(widget("two", "a", "1"))
	s.create(gadget("one", "c", "1"))
	s.expectList(widgetKind(), "one", "one/a", "one/b")
	s.expectList(widgetKind(), "two", "two/a")
	s.expectList(widgetKind(), configstore.NamespaceAll, "one/a", "one/b", "two/a")
	s.expectList(gadgetKind(), configstore.NamespaceAll, "one/c")
	s.remove(widget("two", "a", ""))
	for _, c := range []struct {
		kind      configstore.GroupVersionKind
		namespace string
	}{
		{widgetKind(), "two"},
		{widgetKind(), "three"},
		{gadgetKind(), "two"},
		{planetKind(), configstore.NamespaceAll},
		{unknownKind(), configstore.NamespaceAll},
	} {
		if list := s.store.List(c.kind, c.namespace); list != nil {
			s.Broken("List(%s, %q) = %v (nil: %t), want nil", c.kind.Kind, c.namespace, names(list), list == nil)
		}
	}
}

func checkListSnapshot(s *suite) {
	s.create(widget("default", "b", "1"))
	s.create(widget("default", "c", "1"))
	for _, namespace := range []string{"default", configstore.NamespaceAll} {
		list := s.store.List(widgetKind(), namespace)
		before := slices.Clone(list)
		s.update(widget("default", "b", "2"))
		s.create(widget("default", "a", "1"))
		s.remove(widget("default", "c", ""))
		if !slices.Equal(list, before) {
			s.Broken("List(Widget, %q) was %v and became %v after later writes", namespace, names(before), names(list))
		}
		s.remove(widget("default", "a", ""))
		s.create(widget("default", "c", "1"))
	}
}

func checkShared(s *suite) {
	s.create(widget("default", "a", "1"))
	s.create(widget("default", "b", "1"))
	a := widget("default", "a", "")
	for _, namespace := range []string{"default", configstore.NamespaceAll} {
		list := s.store.List(widgetKind(), namespace)
		if len(list) != 2 {
			s.Stop("List(Widget, %q) = %v, want both objects", namespace, names(list))
		}
		if one, two := s.get(a), s.get(a); list[0] != one || one != two {
			s.Broken("Get and List(Widget, %q) return different pointers for %s", namespace, a.Key())
		}
	}
}
