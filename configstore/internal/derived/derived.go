// SPDX-License-Identifier: Apache-2.0

// Package derived has what is the same for all caches of configs that a converter makes of
// other objects: they are read like a memory.Controller, and nobody but the converter
// writes to them.
package derived

import (
	"fmt"
	"log/slog"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/internal/reading"
	"github.com/pilotkit/pilotkit/configstore/memory"
)

// reads is what readers call.
type reads = reading.Cache

// Cache shows what is in a controller, and takes no writes.
type Cache struct{ reads }

// Of returns the cache that shows what is in a controller.
func Of(published *memory.Controller) Cache { return Cache{published} }

// Publisher returns the controller for configs of some of the kinds that all has, which must
// have them. They are not validated: the converter has. HasSynced is false until synced is true.
func Publisher(
	all configstore.Schemas, kinds []configstore.GroupVersionKind, synced func() bool, logger *slog.Logger,
) *memory.Controller {
	b := configstore.NewSchemasBuilder()
	for _, kind := range kinds {
		schema, _ := all.Find(kind)
		b.MustAdd(schema)
	}
	c := memory.NewController(
		memory.Make(b.Build(), memory.Options{SkipValidation: true}), memory.ControllerOptions{Logger: logger},
	)
	c.RegisterHasSyncedHandler(synced)
	return c
}

// Mutations returns the batch that makes the changes of a converter.
func Mutations(changes []configstore.Change) []configstore.Mutation {
	out := make([]configstore.Mutation, 0, len(changes))
	for _, change := range changes {
		m := configstore.Mutation{Op: configstore.OpUpdate, Config: *change.Curr}
		switch change.Event {
		case configstore.EventAdd:
			m.Op = configstore.OpCreate
		case configstore.EventDelete:
			m.Op = configstore.OpDelete
		case configstore.EventUpdate:
		}
		out = append(out, m)
	}
	return out
}

// Create implements ConfigStore: ErrReadOnly.
func (Cache) Create(config configstore.Config) (revision string, err error) {
	return "", readOnly(configstore.OpCreate, config.Key())
}

// Update implements ConfigStore: ErrReadOnly.
func (Cache) Update(config configstore.Config) (revision string, err error) {
	return "", readOnly(configstore.OpUpdate, config.Key())
}

// UpdateStatus implements ConfigStore: ErrReadOnly.
func (Cache) UpdateStatus(config configstore.Config) (revision string, err error) {
	return "", readOnly(configstore.OpUpdateStatus, config.Key())
}

// Delete implements ConfigStore: ErrReadOnly.
func (Cache) Delete(kind configstore.GroupVersionKind, name, namespace string, _ *string) error {
	return readOnly(configstore.OpDelete, configstore.ConfigKey{Kind: kind, Name: name, Namespace: namespace})
}

func readOnly(op configstore.Op, key configstore.ConfigKey) error {
	return fmt.Errorf("%s %s: %w", op, key.Object(), configstore.ErrReadOnly)
}
