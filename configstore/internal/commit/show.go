// SPDX-License-Identifier: Apache-2.0

package commit

import "github.com/pilotkit/pilotkit/configstore"

// Shown is a store that one source fills alone. It takes what the schemas of its kinds take without their rules.
type Shown interface {
	configstore.Reader
	configstore.BatchWriter
}

// Refused is an object that a store does not take.
type Refused struct {
	Object configstore.ConfigKey
	Err    error
}

// Show commits a batch of a source to the store that it fills alone. One object that the store does not take does not
// keep back the others: they are one batch without it, and Show returns its error. The state of it that the
// store has stays. What was left out before does not matter to later batches, because a creation or an update is an
// upsert, and the deletion of an object that the store does not have is none.
func Show(store Shown, mutations []configstore.Mutation) []Refused {
	if len(mutations) == 0 {
		return nil
	}
	_, err := store.Apply(mutations...)
	if err == nil {
		return nil
	}
	var refused []Refused
	possible := make([]configstore.Mutation, 0, len(mutations))
	exists := make(map[configstore.ConfigKey]bool, len(mutations)) // what the batch has made of objects
	for _, m := range mutations {
		key := m.Config.Key()
		has, changed := exists[key]
		if !changed {
			has = store.Get(key.Kind, key.Name, key.Namespace) != nil
		}
		if m.Op == configstore.OpDelete {
			exists[key] = false
			if has {
				possible = append(possible, m)
			}
			continue
		}
		if err := checkShape(store.Schemas(), &m.Config); err != nil {
			refused = append(refused, Refused{key, err})
			continue
		}
		m.Op = configstore.OpUpsert
		exists[key] = true
		possible = append(possible, m)
	}
	if _, err = store.Apply(possible...); err != nil { // Nothing is known that gets here.
		for _, m := range possible {
			refused = append(refused, Refused{m.Config.Key(), err})
		}
	}
	return refused
}

// checkShape returns why a store that does not know the rules of kinds does not take an object.
func checkShape(schemas configstore.Schemas, c *configstore.Config) error {
	schema, ok := schemas.Find(c.GroupVersionKind)
	if !ok {
		return configstore.ErrUnknownKind
	}
	schema.Validate = nil
	_, err := schema.Check(*c)
	return err
}
