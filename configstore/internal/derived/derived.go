// SPDX-License-Identifier: Apache-2.0

// Package derived has the common part of all config caches that a converter derives from other
// objects: they are read like a memory.Controller, and only the converter writes to them.
package derived

import (
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/internal/commit"
	"github.com/pilotkit/pilotkit/configstore/internal/reading"
	"github.com/pilotkit/pilotkit/configstore/memory"
)

// reads is what readers call.
type reads = reading.Cache

// Cache shows the content of a controller, and rejects writes.
type Cache struct{ reads }

// Of returns the cache that shows the published content.
func Of(published *Published) Cache { return Cache{published.Controller} }

// Published is a controller that is filled by one source only, such as a converter, together with
// the rejected objects. Make it with NewPublished or Publisher.
type Published struct {
	*memory.Controller

	logger *slog.Logger

	mu      sync.Mutex
	refused map[configstore.ConfigKey]error
}

// NewPublished returns what publishes to a controller. logger must not be nil.
func NewPublished(c *memory.Controller, logger *slog.Logger) *Published {
	return &Published{Controller: c, logger: logger, refused: map[configstore.ConfigKey]error{}}
}

// Publisher returns what shows configs of some of the kinds that all has, which must
// have them. They are not validated: the converter has. HasSynced is false until synced is true.
func Publisher(
	all configstore.Schemas, kinds []configstore.GroupVersionKind, synced func() bool, logger *slog.Logger,
) *Published {
	b := configstore.NewSchemasBuilder()
	for _, kind := range kinds {
		schema, _ := all.Find(kind)
		b.MustAdd(schema)
	}
	c := memory.NewController(
		memory.Make(b.Build(), memory.Options{SkipValidation: true}), memory.ControllerOptions{Logger: logger},
	)
	c.RegisterHasSyncedHandler(synced)
	return NewPublished(c, logger)
}

// Publish commits changes as one batch. A config that cannot be published stays as it was, is in Refused until it can
// be or is gone, and keeps back no other.
func (p *Published) Publish(mutations []configstore.Mutation) {
	refused := commit.Show(p.Controller, mutations)
	p.mu.Lock()
	for i := range mutations {
		delete(p.refused, mutations[i].Config.Key())
	}
	for _, r := range refused {
		p.refused[r.Object] = r.Err
	}
	p.mu.Unlock()
	for _, r := range refused {
		p.logger.Error("config was not published", slog.String("object", r.Object.Object()), slog.Any("error", r.Err))
	}
}

// Refused returns the configs that cannot be published, sorted.
func (p *Published) Refused() []commit.Refused {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []commit.Refused
	for _, key := range slices.SortedFunc(maps.Keys(p.refused), configstore.ConfigKey.Compare) {
		out = append(out, commit.Refused{Object: key, Err: p.refused[key]})
	}
	return out
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
