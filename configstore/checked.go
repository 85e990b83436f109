// SPDX-License-Identifier: Apache-2.0

package configstore

import (
	"maps"
	"slices"
)

// Checked is the evidence that an object is valid under one schema. A source that validates objects
// itself, for example to report the line of an error, puts it into its Mutations. Only
// Schemas.Check makes a Checked, so that a store may rely on it.
type Checked struct {
	schema   *addedSchema
	config   Config
	warnings []Violation
}

// Check is Schema.Check by the schema of the object's kind. If the object is valid,
// it returns the evidence of it, with the warnings. An object of a kind that s does
// not have is an ErrUnknownKind.
func (s Schemas) Check(c Config) (checked *Checked, warnings []Violation, err error) {
	i, ok := s.Position(&c.GroupVersionKind)
	if !ok {
		return nil, nil, s.UnknownKind(c.GroupVersionKind, c.Spec)
	}
	if warnings, err = s.all[i].Check(c); err != nil {
		return nil, warnings, err
	}
	return &Checked{schema: s.all[i].added, config: c, warnings: warnings}, warnings, nil
}

// Recheck is Check for an object that may have been checked before: if checked is
// the evidence of that, by the schema that s has, the object is not validated
// again. checked may be nil.
func (s Schemas) Recheck(c Config, checked *Checked) (warnings []Violation, err error) {
	i, ok := s.Position(&c.GroupVersionKind)
	switch {
	case !ok:
		return nil, s.UnknownKind(c.GroupVersionKind, c.Spec)
	case checked != nil && checked.schema == s.all[i].added && checked.covers(&c):
		return checked.warnings, nil
	}
	return s.all[i].Check(c)
}

// covers reports whether c is the object that was checked. ResourceVersion and
// Generation may differ: the store sets them.
func (k *Checked) covers(c *Config) bool {
	d := &k.config
	return c.Spec == d.Spec && c.Status == d.Status &&
		c.GroupVersionKind == d.GroupVersionKind &&
		c.Name == d.Name && c.Namespace == d.Namespace &&
		c.UID == d.UID && c.Domain == d.Domain &&
		c.CreationTimestamp.Equal(d.CreationTimestamp) &&
		maps.Equal(c.Labels, d.Labels) && maps.Equal(c.Annotations, d.Annotations) &&
		slices.Equal(c.OwnerReferences, d.OwnerReferences)
}
