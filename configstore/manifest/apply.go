// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"errors"
	"fmt"

	"github.com/pilotkit/pilotkit/configstore"
)

// Apply stores every object of an input, as kubectl apply does: it updates existing objects, unless
// they are equal, and creates the others. Other objects of the store are left alone. Resource
// versions and generations in the input are ignored.
//
// If any document or object is invalid, nothing is stored. The error joins the errors of all
// unreadable documents and of all objects that break the rules of their kind, with document and
// line. If the store is a configstore.BatchWriter, possibly through wrappers, all objects are
// committed as one batch. Otherwise they are written one after the other, and the objects before
// one that the store rejects stay stored.
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

// check returns the error of a document, readable or not, or the evidence that its object is valid.
func (d Document) check(schemas configstore.Schemas) (*configstore.Checked, error) {
	if d.Err != nil {
		return nil, d.Err
	}
	checked, _, err := schemas.Check(d.Config)
	if err == nil {
		return checked, nil
	}
	field := ""
	if invalid, ok := errors.AsType[*configstore.ValidationError](err); ok {
		field = invalid.Violations[0].Field
	}
	line, _ := d.Position(field)
	return nil, fmt.Errorf("document %d, line %d: %w", d.Number, line, err)
}
