// SPDX-License-Identifier: Apache-2.0

package storetest_test

import (
	"cmp"
	"errors"
	"runtime"
	"slices"
	"strings"

	"github.com/pilotkit/pilotkit/configstore"
)

// reference is a plain store and cache that keeps every promise, except the one
// that its fault names. Its lock can be given up, so that a deadlock ends when
// the test does.
type reference struct {
	schemas configstore.Schemas
	fault   string
	history int
	// trusting accepts everything, while a mutation is planned.
	trusting bool
	sem      chan struct{}
	dead     chan struct{}

	objects map[configstore.ConfigKey]*configstore.Config
	// past has the states before the last changes, the latest last.
	past     []map[configstore.ConfigKey]*configstore.Config
	lists    map[configstore.ConfigKey][]*configstore.Config
	revision uint64
	changes  []configstore.Change
	grown    chan struct{}
	delivery
}

var (
	_ configstore.ConfigStoreCache = (*reference)(nil)
	_ configstore.Subscriber       = (*reference)(nil)
)

func newReference(schemas configstore.Schemas, fault string) *reference {
	r := &reference{
		schemas: schemas, fault: fault, history: 20,
		sem: make(chan struct{}, 1), dead: make(chan struct{}), grown: make(chan struct{}),
		objects: map[configstore.ConfigKey]*configstore.Config{}, lists: map[configstore.ConfigKey][]*configstore.Config{},
	}
	r.wake = make(chan struct{}, 1)
	return r
}

func (r *reference) is(fault string) bool { return r.fault == fault }

func (r *reference) lock() {
	select {
	case r.sem <- struct{}{}:
	case <-r.dead:
		runtime.Goexit()
	}
}

func (r *reference) unlock() { <-r.sem }

// giveWay lets others into the middle of something that a fault has made two
// steps.
func (r *reference) giveWay() {
	r.unlock()
	runtime.Gosched()
	r.lock()
}

// kill ends all waits.
func (r *reference) kill() { close(r.dead) }

func (r *reference) Schemas() configstore.Schemas {
	if r.is("schemas lack a kind") {
		return configstore.Schemas{}
	}
	return r.schemas
}

func (r *reference) key(kind configstore.GroupVersionKind, name, namespace string) (configstore.ConfigKey, bool) {
	schema, ok := r.schemas.Find(kind)
	canonical := schema.GroupVersionKind
	if r.is("unknown kinds accepted") && !ok {
		canonical, ok = kind, true
	}
	if r.is("aliases are kinds of their own") {
		canonical = kind
	}
	switch {
	case r.is("get ignores the namespace"):
		namespace = "any"
	case r.is("key without separator"):
		namespace, name = "", namespace+name
	}
	return configstore.ConfigKey{Kind: canonical, Name: name, Namespace: namespace}, ok
}

// readable is what reads see.
func (r *reference) readable() map[configstore.ConfigKey]*configstore.Config {
	lag := map[string]int{"reads lag": 1, "reads lag far": 2}[r.fault]
	if lag == 0 || lag > len(r.past) {
		return r.objects
	}
	return r.past[len(r.past)-lag]
}

func (r *reference) Get(kind configstore.GroupVersionKind, name, namespace string) *configstore.Config {
	r.lock()
	defer r.unlock()
	key, ok := r.key(kind, name, namespace)
	got := r.readable()[key]
	if !ok || got == nil {
		return nil
	}
	if r.is("get copies") {
		c := *got
		return &c
	}
	return got
}

func (r *reference) List(kind configstore.GroupVersionKind, namespace string) []*configstore.Config {
	r.lock()
	defer r.unlock()
	key, ok := r.key(kind, "", namespace)
	key.Namespace = namespace
	schema, _ := r.schemas.Find(kind)
	if !ok || r.is("cluster-scoped kinds are not listed") && schema.ClusterScoped {
		return nil
	}
	if list, ok := r.lists[key]; ok {
		return list
	}
	var list []*configstore.Config
	for k, c := range r.readable() {
		if k.Kind == key.Kind && (namespace == "" || c.Namespace == namespace || r.is("list ignores the namespace")) {
			list = append(list, c)
		}
	}
	slices.SortFunc(list, func(a, b *configstore.Config) int {
		switch {
		case r.is("lists are sorted by text"):
			return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name)
		case r.is("lists are sorted by time"):
			return a.CreationTimestamp.Compare(b.CreationTimestamp)
		}
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	if r.is("empty lists are not nil") && list == nil {
		list = []*configstore.Config{}
	}
	if r.is("cached lists are stale") || r.is("lists change in place") {
		r.lists[key] = list
	}
	return list
}

func (r *reference) Create(c configstore.Config) (string, error) { return r.single(verbCreate, c, nil) }

func (r *reference) Update(c configstore.Config) (string, error) { return r.single(verbUpdate, c, nil) }

func (r *reference) UpdateStatus(c configstore.Config) (string, error) {
	return r.single(verbStatus, c, nil)
}

func (r *reference) Delete(kind configstore.GroupVersionKind, name, namespace string, revision *string) error {
	c := configstore.Config{Meta: configstore.Meta{GroupVersionKind: kind, Name: name, Namespace: namespace}}
	_, err := r.single(verbDelete, c, revision)
	return err
}

const (
	verbCreate = "create"
	verbUpdate = "update"
	verbStatus = "update status of"
	verbDelete = "delete"
	verbUpsert = "upsert"
)

func (r *reference) single(verb string, c configstore.Config, revision *string) (string, error) {
	r.lock()
	if r.is("mutates arguments") && c.Labels != nil {
		c.Labels["storetest"] = "was here"
	}
	next, err := r.plan(verb, c, revision)
	if r.is("check, then write") {
		r.giveWay()
	}
	version := ""
	if err == nil {
		version = r.commit(next)
	} else {
		if r.is("refused writes send events") && !errors.Is(err, configstore.ErrUnknownKind) {
			r.enqueue(configstore.Change{Event: configstore.EventUpdate, Old: &c, Curr: &c, Revision: r.revision})
		}
		if r.is("refused writes take a revision") {
			r.revision++
		}
	}
	wait := r.room()
	r.unlock()
	if wait {
		<-r.dead
	}
	if r.is("events are handed over in Create") {
		r.pass()
	}
	return version, err
}
