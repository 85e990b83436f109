// SPDX-License-Identifier: Apache-2.0

package commit

import "github.com/pilotkit/pilotkit/configstore"

// Shown is a store that is filled by one source only. It accepts all objects that the schemas of
// its kinds accept without their validators.
type Shown interface {
	configstore.Reader
	configstore.BatchWriter
}

// Refused is an object that a store does not take.
type Refused struct {
	Object configstore.ConfigKey
	Err    error
}

// Deletion returns a mutation that deletes an object regardless of its version.
func Deletion(object configstore.ConfigKey) configstore.Mutation {
	return configstore.Mutation{Op: configstore.OpDelete, Config: configstore.Config{
		Meta: configstore.Meta{GroupVersionKind: object.Kind, Name: object.Name, Namespace: object.Namespace},
	}}
}

// Show commits a batch of a source to the store that it alone fills. An object that the store
// rejects does not block the others: they form a batch without it, the store keeps its last state
// of that object, and Show returns the error. Later batches do not depend on objects that were left
// out, because a creation or an update is an upsert, and deleting an absent object is not an error.
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
	exists := make(map[configstore.ConfigKey]bool, len(mutations)) // existence of objects after the batch so far
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
		if err := CheckShape(store.Schemas(), &m.Config); err != nil {
			refused = append(refused, Refused{key, err})
			continue
		}
		m.Op = configstore.OpUpsert
		exists[key] = true
		possible = append(possible, m)
	}
	if _, err = store.Apply(possible...); err != nil { // No known error gets here.
		for _, m := range possible {
			refused = append(refused, Refused{m.Config.Key(), err})
		}
	}
	return refused
}

// CheckShape returns an error if an object is rejected even by a store without the rules of kinds.
func CheckShape(schemas configstore.Schemas, c *configstore.Config) error {
	schema, ok := schemas.Find(c.GroupVersionKind)
	if !ok {
		return configstore.ErrUnknownKind
	}
	schema.Validate = nil
	_, err := schema.Check(*c)
	return err
}
