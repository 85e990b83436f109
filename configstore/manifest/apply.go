// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"errors"
	"fmt"

	"github.com/pilotkit/pilotkit/configstore"
)

// Apply stores every object of an input, as kubectl apply does: one that exists is
// updated, and unchanged if it is equal; others are created. What the store has
// besides is left alone. Resource versions and generations in the input do not
// count.
//
// A mistake anywhere stores nothing: the error joins those of all documents that
// cannot be read and of all objects that break the rules of their kind, with the
// document and the line. If the store is a configstore.BatchWriter, possibly through
// wrappers, all is committed as one batch. In other stores objects are written one
// after the other, and those before one that the store refuses are stored.
func Apply(store configstore.ConfigStore, data []byte, opts Options) error {
	schemas := store.Schemas()
	var checked []*configstore.Checked
	configs, err := collect(documents(schemas, data, opts), func(d Document) error {
		valid, err := d.check(schemas)
		checked = append(checked, valid)
		return err
	})
	if err != nil {
		return err
	}
	for i := range configs {
		// These two are the store's to set.
		configs[i].ResourceVersion, configs[i].Generation = "", 0
	}
	if batches, ok := configstore.As[configstore.BatchWriter](store); ok {
		batch := make([]configstore.Mutation, len(configs))
		for i, c := range configs {
			batch[i] = configstore.Mutation{Op: configstore.OpUpsert, Config: c, Checked: checked[i]}
		}
		_, err := batches.Apply(batch...)
		return err
	}
	for _, c := range configs {
		if _, err := configstore.Upsert(store, c); err != nil {
			return err
		}
	}
	return nil
}

// check returns what is wrong with a document, be it read or not, or the evidence
// that nothing is.
func (d Document) check(schemas configstore.Schemas) (*configstore.Checked, error) {
	if d.Err != nil {
		return nil, d.Err
	}
	checked, _, err := schemas.Check(d.Config)
	if err == nil {
		return checked, nil
	}
	field := ""
	var invalid *configstore.ValidationError
	if errors.As(err, &invalid) {
		field = invalid.Violations[0].Field
	}
	line, _ := d.Position(field)
	return nil, fmt.Errorf("document %d, line %d: %w", d.Number, line, err)
}
