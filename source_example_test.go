// SPDX-License-Identifier: Apache-2.0

package pilotkit_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"go.uber.org/atomic"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/configstore/memory"
)

// catalogue keeps the entries of one namespace of a store equal to what a foreign
// catalogue lists.
type catalogue struct {
	list      func(ctx context.Context) (map[string]*networking.ServiceEntry, error)
	store     *memory.Store
	namespace string
	synced    atomic.Bool
}

// Sync lists the catalogue once and commits what differs as one batch. An error
// is no empty answer: the store keeps what it has.
func (c *catalogue) Sync(ctx context.Context) error {
	listed, err := c.list(ctx)
	if err != nil {
		return fmt.Errorf("list the catalogue: %w", err)
	}
	entries := configstore.Typed[*networking.ServiceEntry](c.store)
	var batch []configstore.Mutation
	for _, name := range slices.Sorted(maps.Keys(listed)) {
		entry := configstore.NewConfig(name, c.namespace, listed[name])
		batch = append(batch, entries.Mutation(configstore.OpUpsert, entry))
	}
	for _, old := range entries.List(c.namespace) {
		if _, ok := listed[old.Name]; !ok {
			batch = append(batch, entries.Mutation(configstore.OpDelete, old))
		}
	}
	if _, err := c.store.Apply(batch...); err != nil {
		return fmt.Errorf("store the catalogue: %w", err)
	}
	c.synced.Store(true)
	return nil
}

// A source of configs writes to a store; the store's controller does the rest.
func Example_configSource() {
	answer := map[string]*networking.ServiceEntry{
		"a": {Hosts: []string{"a.example.com"}, Ports: []*networking.ServicePort{{Number: 80, Name: "http"}}},
		"b": {Hosts: []string{"b.example.com"}, Ports: []*networking.ServicePort{{Number: 80, Name: "http"}}},
	}
	var down error
	store := memory.Make(istio.Schemas())
	source := &catalogue{store: store, namespace: "catalogue", list: func(context.Context) (map[string]*networking.ServiceEntry, error) {
		return answer, down
	}}
	configs := memory.NewController(store)
	configs.RegisterHasSyncedHandler(source.synced.Load)
	configs.RegisterEventHandler(istio.ServiceEntry, func(_, curr configstore.Config, event configstore.Event) {
		fmt.Println(event, curr.Name)
	})

	sync := func() {
		if err := source.Sync(context.Background()); err != nil {
			fmt.Println(err)
		}
		configs.Drain()
	}
	sync()
	delete(answer, "b")
	sync()
	answer, down = nil, errors.New("unreachable")
	sync()
	fmt.Println(len(store.List(istio.ServiceEntry, "")), configs.HasSynced())
	// Output:
	// add a
	// add b
	// delete b
	// list the catalogue: unreachable
	// 1 true
}
