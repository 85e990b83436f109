// SPDX-License-Identifier: Apache-2.0

package memory_test

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/memory"
)

// A kind of one's own: any protobuf message can be a spec.
func exampleKind() configstore.GroupVersionKind {
	return configstore.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Motto"}
}

func exampleSchemas() configstore.Schemas {
	return configstore.NewSchemasBuilder().MustAdd(configstore.Schema{
		GroupVersionKind: exampleKind(),
		Plural:           "mottos",
		Spec:             &wrapperspb.StringValue{},
	}).Build()
}

func motto(name, text string) configstore.Config {
	return configstore.Config{
		Meta: configstore.Meta{GroupVersionKind: exampleKind(), Name: name, Namespace: "default"},
		Spec: wrapperspb.String(text),
	}
}

func Example() {
	store := memory.Make(exampleSchemas())
	revision, _ := store.Create(motto("lisp", "code is data"))
	fmt.Println("created at", revision)

	stored := store.Get(exampleKind(), "lisp", "default")
	fmt.Println(stored.Key().Object(), "generation", stored.Generation)

	// Optimistic concurrency: a writer that has read an old version does not overwrite a
	// newer one.
	changed := stored.Clone()
	changed.Spec = wrapperspb.String("(code is data)")
	_, err := store.Update(changed)
	fmt.Println("first update:", err)
	_, err = store.Update(changed)
	fmt.Println("second update:", err, errors.Is(err, configstore.ErrConflict))

	_, err = store.Create(motto("lisp", ""))
	fmt.Println(err)
	// Output:
	// created at 1
	// Motto default/lisp generation 1
	// first update: <nil>
	// second update: update Motto default/lisp: conflicting resource version: "1" is given, "2" is stored true
	// create Motto default/lisp: already exists
}

func ExampleController() {
	store := memory.Make(exampleSchemas())
	cache := memory.NewController(store)
	_, _ = store.Create(motto("lisp", "code is data"))

	// The handler's view starts complete, then follows every change.
	cache.RegisterEventHandler(exampleKind(), func(old, curr configstore.Config, event configstore.Event) {
		fmt.Printf("%v %s: revision %q, before %q\n", event, curr.Name, curr.ResourceVersion, old.ResourceVersion)
	})
	_, _ = store.Create(motto("go", "share by communicating"))
	_, _ = store.Update(motto("lisp", "(code is data)"))
	_ = store.Delete(exampleKind(), "go", "default", nil)

	// A program calls Run on a goroutine of its own; a test drains.
	cache.Drain()
	// Output:
	// add lisp: revision "1", before ""
	// add go: revision "2", before ""
	// update lisp: revision "3", before "1"
	// delete go: revision "2", before ""
}

func ExampleController_Subscribe() {
	store := memory.Make(exampleSchemas())
	cache := memory.NewController(store)
	_, _ = store.Create(motto("lisp", "code is data"))

	objects, cancel := cache.Subscribe([]configstore.GroupVersionKind{exampleKind()}, func(changes []configstore.Change) {
		for _, c := range changes {
			fmt.Println(c.Event, c.Curr.Name)
		}
	})
	defer cancel()
	for _, o := range objects {
		fmt.Println("there is", o.Name)
	}
	_, _ = store.Apply(
		configstore.Mutation{Op: configstore.OpCreate, Config: motto("go", "share by communicating")},
		configstore.Mutation{Op: configstore.OpUpdate, Config: motto("lisp", "(code is data)")},
	)
	cache.Drain()
	// Output:
	// there is lisp
	// add go
	// update lisp
}

func ExampleController_Run() {
	cache := memory.NewController(memory.Make(exampleSchemas()))
	cache.RegisterEventHandler(exampleKind(), func(_, curr configstore.Config, event configstore.Event) {
		fmt.Println(event, curr.Name)
	})

	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		cache.Run(stop)
	}()
	_, _ = cache.Create(motto("lisp", "code is data"))
	_ = cache.Flush(context.Background()) // everything so far has been handled
	fmt.Println("flushed, synced:", cache.HasSynced())
	close(stop)
	<-done
	// Output:
	// add lisp
	// flushed, synced: true
}

func ExampleStore_Watch() {
	store := memory.Make(exampleSchemas())
	_, _ = store.Create(motto("lisp", "code is data"))

	// Read a consistent state, then follow the store from there.
	snapshot := store.Snapshot()
	for _, c := range snapshot.List(exampleKind(), configstore.NamespaceAll) {
		fmt.Println("have", c.Name)
	}
	_, _ = store.Update(motto("lisp", "(code is data)"))
	_ = store.Delete(exampleKind(), "lisp", "default", nil)

	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	for change, err := range store.Watch(ctx, snapshot.Revision()) {
		if errors.Is(err, configstore.ErrCompacted) {
			fmt.Println("too slow: start again from a snapshot")
			break
		}
		fmt.Println(change.Revision, change.Event, change.Curr.Name)
		if change.Revision == store.Revision() {
			cancel() // enough
		}
	}
	// Output:
	// have lisp
	// 2 update lisp
	// 3 delete lisp
}

func ExampleStore_Apply() {
	store := memory.Make(exampleSchemas())
	_, _ = store.Create(motto("lisp", "code is data"))

	revision, err := store.Apply(
		configstore.Mutation{Op: configstore.OpCreate, Config: motto("go", "share by communicating")},
		configstore.Mutation{Op: configstore.OpUpdate, Config: motto("lisp", "(code is data)")},
	)
	fmt.Println(revision, err)

	// All or nothing: the update is not made, because the create is not possible.
	_, err = store.Apply(
		configstore.Mutation{Op: configstore.OpUpdate, Config: motto("lisp", "")},
		configstore.Mutation{Op: configstore.OpCreate, Config: motto("go", "")},
	)
	fmt.Println(err, "at", store.Revision())
	// Output:
	// 3 <nil>
	// create Motto default/go: already exists at 3
}

func Example_select() {
	store := memory.Make(exampleSchemas())
	for name, language := range map[string]string{"lisp": "functional", "go": "imperative", "ml": "functional"} {
		c := motto(name, "")
		c.Labels = map[string]string{"style": language}
		_, _ = store.Create(c)
	}
	for c := range configstore.Select(store, exampleKind(), "default", map[string]string{"style": "functional"}) {
		fmt.Println(c.Name)
	}
	// Output:
	// lisp
	// ml
}
