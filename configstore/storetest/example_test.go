// SPDX-License-Identifier: Apache-2.0

package storetest_test

import (
	"flag"
	"fmt"
	"sync"
	"testing"

	"google.golang.org/protobuf/types/known/structpb"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/memory"
	"github.com/pilotkit/pilotkit/configstore/storetest"
)

// audited is a custom cache: it records deletions.
type audited struct {
	*memory.Controller
	mu      sync.Mutex
	deleted []configstore.ConfigKey
}

func (a *audited) Delete(kind configstore.GroupVersionKind, name, namespace string, resourceVersion *string) error {
	err := a.Controller.Delete(kind, name, namespace, resourceVersion)
	if err == nil {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.deleted = append(a.deleted, configstore.ConfigKey{Kind: kind, Name: name, Namespace: namespace})
	}
	return err
}

// An own store, here one that adds something to another, is proved by two lines
// in a test.
func ExampleTestCache() {
	testAudited := func(t *testing.T) {
		t.Helper()
		factory := func(_ testing.TB, schemas configstore.Schemas) storetest.Subject {
			return storetest.Subject{Store: &audited{Controller: memory.NewController(memory.Make(schemas))}}
		}
		storetest.TestStore(t, factory)
		storetest.TestCache(t, factory)
	}

	fmt.Println(goTest("TestAudited", testAudited))
	// Output: true
}

// goTest does what go test does. It prints nothing, regardless of the flag -v, because that would
// be in the output of the example.
func goTest(name string, test func(*testing.T)) bool {
	verbose := flag.Lookup("test.v").Value
	was := verbose.String()
	defer func() { _ = verbose.Set(was) }()
	if err := verbose.Set("false"); err != nil {
		panic(err)
	}
	everything := func(string, string) (bool, error) { return true, nil }
	return testing.RunTests(everything, []testing.InternalTest{{Name: name, F: test}})
}

// A Recorder has the events that a cache has sent.
func ExampleRecorder() {
	kind := configstore.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Limit"}
	cache := memory.NewController(memory.Make(configstore.NewSchemasBuilder().
		MustAdd(configstore.Schema{GroupVersionKind: kind, Spec: &structpb.Value{}}).Build()))

	var r storetest.Recorder
	cache.RegisterEventHandler(kind, r.Handle)
	c := configstore.Config{
		Meta: configstore.Meta{GroupVersionKind: kind, Namespace: "default", Name: "requests"},
		Spec: structpb.NewNumberValue(10),
	}
	_, err := cache.Create(c)
	fmt.Println(err)
	c.Spec = structpb.NewNumberValue(20)
	_, err = cache.Update(c)
	fmt.Println(err)
	cache.Drain()
	for _, call := range r.Take() {
		fmt.Println(call)
	}
	// Output:
	// <nil>
	// <nil>
	// add Limit default/requests
	// update Limit default/requests
}
