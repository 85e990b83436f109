// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/internal/rules"
	"github.com/pilotkit/pilotkit/internal/guard"
)

// Create implements ConfigStore.
func (s *Store) Create(c configstore.Config) (revision string, err error) {
	return s.write(request{op: configstore.OpCreate, config: c})
}

// Update implements ConfigStore. A zero CreationTimestamp keeps the stored one;
// any other replaces it. Generation is ignored.
func (s *Store) Update(c configstore.Config) (revision string, err error) {
	return s.write(request{op: configstore.OpUpdate, config: c, given: c.ResourceVersion != ""})
}

// UpdateStatus implements ConfigStore.
func (s *Store) UpdateStatus(c configstore.Config) (revision string, err error) {
	return s.write(request{op: configstore.OpUpdateStatus, config: c, given: c.ResourceVersion != ""})
}

// Delete implements ConfigStore.
func (s *Store) Delete(kind configstore.GroupVersionKind, name, namespace string, resourceVersion *string) error {
	r := request{op: configstore.OpDelete}
	r.config.GroupVersionKind, r.config.Name, r.config.Namespace = kind, name, namespace
	if resourceVersion != nil {
		r.config.ResourceVersion, r.given = *resourceVersion, true
	}
	_, err := s.write(r)
	return err
}

// write commits one request and returns the object's revision.
func (s *Store) write(r request) (revision string, err error) {
	_, revision, err = s.commit([]request{r})
	return revision, err
}

// request is a mutation on its way through the store.
type request struct {
	op configstore.Op
	// config is the caller's, under the canonical kind.
	config configstore.Config
	// checked may be the evidence that config is valid.
	checked *configstore.Checked
	// given is set if the stored ResourceVersion has to be that of config. In a
	// mirror only what removes an object can have such a condition.
	given bool

	// What prepare finds:

	kind     *kind
	warnings []configstore.Violation
	// seen is the object at the revision seenAt, or nil. An Update was compared
	// with it, and differs how.
	seen    *object
	seenAt  uint64
	differs rules.Difference
}

func (r *request) key() key { return key{Namespace: r.config.Namespace, Name: r.config.Name} }

// fail wraps an error with the verb and the object.
func (r *request) fail(err error) error { return rules.Error(r.op, r.config.Key(), err) }

// prepare does the work that needs no lock: it finds the kind, validates, and compares with the
// currently stored object.
func (s *Store) prepare(r *request) error {
	kind := r.config.GroupVersionKind
	if kind == (configstore.GroupVersionKind{}) {
		kind, _ = s.schemas.KindOf(r.config.Spec)
	}
	r.kind = s.kind(&kind)
	if r.kind == nil {
		return r.fail(s.schemas.UnknownKind(r.config.GroupVersionKind, r.config.Spec))
	}
	r.config.GroupVersionKind = r.kind.gvk()
	if r.kind.mirror && (r.op == configstore.OpUpdate || r.op == configstore.OpUpsert) {
		r.given = false
	}
	if err := s.validate(r); err != nil {
		return r.fail(err)
	}
	r.seenAt = s.committed.Load()
	r.seen = r.kind.get(r.key(), r.seenAt)
	if r.seen == nil {
		return nil
	}
	r.seen.verify()
	if r.op == configstore.OpUpdate || r.op == configstore.OpUpsert {
		r.differs = r.kind.compare(&r.seen.Config, &r.config)
	}
	return nil
}

// validate checks the object that the request stores.
func (s *Store) validate(r *request) (err error) {
	switch {
	case !rules.WritesSpec(r.op):
		err = rules.Validate(r.op, &r.config, &r.kind.schema)
	case s.opts.SkipValidation:
		_, err = r.kind.shape.Check(r.config)
	default:
		r.warnings, err = s.schemas.Recheck(r.config, r.checked)
	}
	return err
}

// warn hands the validator's warnings to the program.
func (s *Store) warn(r *request) {
	if len(r.warnings) > 0 && s.opts.OnWarning != nil {
		// The write is done, and the program's function no part of it.
		_ = guard.Call(func() { s.opts.OnWarning(r.config.Key(), r.warnings) })
	}
}

// compare returns the difference that an Update of old with c would make. In a mirror the caller sets
// the version and the generation.
func (k *kind) compare(old, c *configstore.Config) rules.Difference {
	d := rules.Compare(&k.schema, old, c)
	if k.mirror && (old.ResourceVersion != c.ResourceVersion || old.Generation != c.Generation) {
		d.Anything = true
	}
	return d
}
