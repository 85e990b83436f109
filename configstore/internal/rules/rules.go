// SPDX-License-Identifier: Apache-2.0

// Package rules has the rules of configstore.ConfigStore for writes, which the stores share. All
// functions are pure.
package rules

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/pilotkit/pilotkit/configstore"
)

// Decide returns the operation that is to be done: an upsert is a creation or an update. exists is
// set if the object is stored, given if the mutation has a ResourceVersion.
func Decide(op configstore.Op, exists, given bool) configstore.Op {
	switch {
	case op != configstore.OpUpsert:
		return op
	case exists || given:
		return configstore.OpUpdate
	default:
		return configstore.OpCreate
	}
}

// Check returns an error if an operation other than an upsert is not possible. If given is set, the
// stored ResourceVersion has to be version.
func Check(op configstore.Op, exists, given bool, version, stored string) error {
	switch {
	case op == configstore.OpCreate && exists:
		return configstore.ErrAlreadyExists
	case op == configstore.OpCreate:
		return nil
	case !exists:
		return configstore.ErrNotFound
	case given && version != stored:
		return fmt.Errorf("%w: %q is given, %q is stored", configstore.ErrConflict, version, stored)
	}
	return nil
}

// Error returns the error of a write, wrapped with the verb and the object.
func Error(op configstore.Op, object configstore.ConfigKey, err error) error {
	if errors.Is(err, configstore.ErrInvalid) {
		return fmt.Errorf("%s: %w", op, err) // The error names the object itself.
	}
	return fmt.Errorf("%s %s: %w", op, object.Object(), err)
}

// WritesSpec reports whether an operation stores a config with its spec, so that the config is validated as a
// whole.
func WritesSpec(op configstore.Op) bool {
	return op == configstore.OpCreate || op == configstore.OpUpdate || op == configstore.OpUpsert
}

// Validate checks the part of a config that an operation without a spec stores: the status, or nothing.
func Validate(op configstore.Op, c *configstore.Config, schema *configstore.Schema) error {
	switch op {
	case configstore.OpUpdateStatus:
		config, shape := *c, *schema
		config.Spec, shape.Validate = schema.Spec, nil // Only the status counts.
		_, err := shape.Check(config)
		return err
	case configstore.OpDelete:
		return nil
	default:
		return &configstore.ValidationError{
			Key: c.Key(), Violations: []configstore.Violation{{Message: "the operation is unknown"}},
		}
	}
}

// Difference says which parts of an object an update changes.
type Difference struct{ Anything, Spec bool }

// Compare returns the difference that an update of old with next makes. Fields that the store sets,
// and a zero CreationTimestamp, are ignored.
func Compare(schema *configstore.Schema, old, next *configstore.Config) Difference {
	spec := !schema.EqualSpecs(old.Spec, next.Spec)
	return Difference{Spec: spec, Anything: spec ||
		old.UID != next.UID || old.Domain != next.Domain ||
		!next.CreationTimestamp.IsZero() && !next.CreationTimestamp.Equal(old.CreationTimestamp) ||
		!maps.Equal(old.Labels, next.Labels) || !maps.Equal(old.Annotations, next.Annotations) ||
		!slices.Equal(old.OwnerReferences, next.OwnerReferences) ||
		!configstore.EqualMessage(old.Status, next.Status)}
}
