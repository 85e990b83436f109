// SPDX-License-Identifier: Apache-2.0

package file

import "github.com/pilotkit/pilotkit/configstore"

// commit writes, and returns the outcome of each write. One write that is
// refused does not keep back the others.
func (s *Source) commit(writes []write) []error {
	errs := make([]error, len(writes))
	if batcher, ok := s.store.(configstore.BatchWriter); ok && len(writes) > 1 {
		// The second attempt leaves out what the store is going to refuse.
		for _, check := range []bool{false, true} {
			if s.commitBatch(batcher, writes, errs, check) {
				return errs
			}
		}
	}
	for i, w := range writes {
		errs[i] = s.commitOne(w)
	}
	return errs
}

// commitBatch writes all at once and reports whether that went well. Objects
// that cannot be written are left out; their errors are in errs.
func (s *Source) commitBatch(batcher configstore.BatchWriter, writes []write, errs []error, check bool) bool {
	batch := make([]configstore.Mutation, 0, len(writes))
	for i, w := range writes {
		m, err := s.mutation(w)
		if err == nil && check && w.claim != nil {
			err = s.check(m.Config)
		}
		if errs[i] = err; err == nil && m.Op != 0 {
			batch = append(batch, m)
		}
	}
	_, err := batcher.Apply(batch...)
	return err == nil
}

// check returns the verdict of the schema.
func (s *Source) check(config configstore.Config) error {
	schema, ok := s.store.Schemas().Find(config.GroupVersionKind)
	if !ok {
		return configstore.ErrUnknownKind
	}
	_, err := schema.Check(config)
	return err
}
