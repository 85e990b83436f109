// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"bytes"
	"encoding/json"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/manifest"
)

// decode returns an object as a config, and what its schema finds questionable about
// it. The error matches manifest.ErrMalformed or configstore.ErrInvalid.
func (k *kind) decode(o *object) (config configstore.Config, warnings []configstore.Violation, err error) {
	config = configstore.Config{Meta: k.meta(o)}
	if !k.decodeFast(o, &config) {
		if err := k.decodeLenient(o, &config); err != nil {
			return config, nil, err
		}
	}
	schema := k.schema
	if k.cache.opts.SkipValidation {
		schema.Validate = nil
	}
	warnings, err = schema.Check(config)
	return config, warnings, err
}

func (k *kind) meta(o *object) configstore.Meta {
	return configstore.Meta{
		GroupVersionKind:  k.gvk(),
		UID:               string(o.UID),
		Name:              o.Name,
		Namespace:         o.Namespace,
		Domain:            k.cache.opts.Domain,
		Labels:            o.Labels,
		Annotations:       o.Annotations,
		ResourceVersion:   o.ResourceVersion,
		CreationTimestamp: o.CreationTimestamp.Time,
		OwnerReferences:   owners(o.OwnerReferences),
		Generation:        o.Generation,
	}
}

// decodeFast decodes what has nothing unusual in it, which is nearly everything. It
// returns false if the object needs a closer look.
func (k *kind) decodeFast(o *object, config *configstore.Config) bool {
	spec, ok := unmarshal(o.Spec, k.schema.NewSpec())
	if !ok {
		return false
	}
	if config.Spec = spec; isNull(o.Status) {
		return true
	}
	empty := k.schema.NewStatus()
	if empty == nil {
		return true // The kind of the schema has none; lenient reading drops it.
	}
	config.Status, ok = unmarshal(o.Status, empty)
	return ok
}

func unmarshal(text json.RawMessage, into proto.Message) (proto.Message, bool) {
	if isNull(text) {
		return into, true
	}
	return into, protojson.Unmarshal(text, into) == nil
}

func isNull(text json.RawMessage) bool { return len(text) == 0 || bytes.Equal(text, []byte("null")) }

// decodeLenient decodes as package manifest does with Options.Lenient, and says
// what is wrong with which field.
func (k *kind) decodeLenient(o *object, config *configstore.Config) error {
	document := map[string]any{
		"apiVersion": k.gvk().APIVersion(),
		"kind":       k.gvk().Kind,
		"metadata":   map[string]string{"name": o.Name, "namespace": o.Namespace},
	}
	for field, text := range map[string]json.RawMessage{"spec": o.Spec, "status": o.Status} {
		if !isNull(text) {
			document[field] = text
		}
	}
	data, err := json.Marshal(document)
	if err != nil {
		return err
	}
	for _, d := range manifest.Parse(k.cache.Schemas(), data, manifest.Options{Lenient: true, MaxBytes: -1, MaxDocuments: -1}) {
		if d.Err != nil {
			return d.Err
		}
		config.Spec, config.Status = d.Config.Spec, d.Config.Status
	}
	return nil
}
