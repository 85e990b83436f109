// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/pilotkit/pilotkit/configstore"
)

// Create implements ConfigStore.
func (s *Store) Create(c configstore.Config) (revision string, err error) {
	return s.write(Mutation{Op: OpCreate, Config: c}, nil)
}

// Update implements ConfigStore. A zero CreationTimestamp keeps the stored one;
// any other replaces it. Generation and everything else that the store sets are
// ignored.
func (s *Store) Update(c configstore.Config) (revision string, err error) {
	return s.write(Mutation{Op: OpUpdate, Config: c}, given(c.ResourceVersion))
}

// UpdateStatus implements ConfigStore.
func (s *Store) UpdateStatus(c configstore.Config) (revision string, err error) {
	return s.write(Mutation{Op: OpUpdateStatus, Config: c}, given(c.ResourceVersion))
}

// Delete implements ConfigStore.
func (s *Store) Delete(kind configstore.GroupVersionKind, name, namespace string, resourceVersion *string) error {
	meta := configstore.Meta{GroupVersionKind: kind, Name: name, Namespace: namespace}
	_, err := s.write(Mutation{Op: OpDelete, Config: configstore.Config{Meta: meta}}, resourceVersion)
	return err
}

// given returns the condition that a ResourceVersion makes: none if empty.
func given(resourceVersion string) *string {
	if resourceVersion == "" {
		return nil
	}
	return &resourceVersion
}

// write commits one mutation and returns the object's revision.
func (s *Store) write(m Mutation, resourceVersion *string) (string, error) {
	r := request{op: m.Op, config: m.Config, resourceVersion: resourceVersion}
	if err := s.prepare(&r); err != nil {
		return "", err
	}
	revision, err := s.commitOne(&r)
	if err != nil {
		return "", err
	}
	s.warn(&r)
	return revision, nil
}

func (s *Store) commitOne(r *request) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.plan.begin(s)
	defer s.plan.end()
	revision, err := s.plan.add(r)
	if err != nil {
		return "", err
	}
	s.commitLocked()
	return revision, nil
}

// request is a mutation on its way through the store.
type request struct {
	op     Op
	config configstore.Config
	// resourceVersion is what the stored one has to be; nil: anything.
	resourceVersion *string

	// What prepare finds:

	kind     *kind
	warnings []configstore.Violation
	// seen is the object that an Update was compared with, and differs how.
	seen    *object
	differs difference
}

func (r *request) key() key { return key{r.config.Namespace, r.config.Name} }

// fail wraps an error with the verb and the object.
func (r *request) fail(err error) error {
	if errors.Is(err, configstore.ErrInvalid) {
		return fmt.Errorf("%s: %w", r.op, err) // it names the object itself
	}
	return fmt.Errorf("%s %s: %w", r.op, r.config.Key().Object(), err)
}

// prepare does what needs no lock: it finds the kind, validates, and compares
// with what is stored at this moment.
func (s *Store) prepare(r *request) error {
	r.kind = s.kinds.find(&r.config.GroupVersionKind)
	if r.kind == nil {
		return r.fail(fmt.Errorf("%w %s", configstore.ErrUnknownKind, r.config.GroupVersionKind))
	}
	r.config.GroupVersionKind = r.kind.gvk()
	switch r.op {
	case OpCreate, OpUpdate:
		schema := &r.kind.schema
		if s.opts.SkipValidation {
			schema = &r.kind.shape
		}
		warnings, err := schema.Check(r.config)
		if err != nil {
			return r.fail(err)
		}
		r.warnings = warnings
	case OpUpdateStatus:
		c := r.config
		c.Spec = r.kind.schema.Spec
		if _, err := r.kind.shape.Check(c); err != nil {
			return r.fail(err)
		}
	case OpDelete:
	default:
		return r.fail(fmt.Errorf("%w: unknown operation", configstore.ErrInvalid))
	}
	if r.seen = r.kind.get(r.key(), s.committed.Load()); r.seen != nil {
		s.verify(r.seen)
		if r.op == OpUpdate {
			r.differs = compare(&r.seen.Config, &r.config)
		}
	}
	return nil
}

// warn tells of the validator's warnings.
func (s *Store) warn(r *request) {
	if len(r.warnings) > 0 && s.opts.OnWarning != nil {
		s.opts.OnWarning(r.config.Key(), r.warnings)
	}
}

// difference is what an Update would change.
type difference struct{ anything, spec bool }

// compare says what an Update of old with c would change: what the store itself
// sets, and a zero CreationTimestamp, do not count.
func compare(old, c *configstore.Config) difference {
	spec := !configstore.EqualMessage(old.Spec, c.Spec)
	return difference{spec: spec, anything: spec ||
		old.UID != c.UID || old.Domain != c.Domain ||
		!c.CreationTimestamp.IsZero() && !c.CreationTimestamp.Equal(old.CreationTimestamp) ||
		!maps.Equal(old.Labels, c.Labels) || !maps.Equal(old.Annotations, c.Annotations) ||
		!slices.Equal(old.OwnerReferences, c.OwnerReferences) ||
		!configstore.EqualMessage(old.Status, c.Status)}
}
