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

// findings are what is to be said about a version of an object.
type findings struct {
	// err is why it is not in the cache. It matches manifest.ErrMalformed or
	// configstore.ErrInvalid.
	err error
	// warnings are what its schema finds questionable.
	warnings []configstore.Violation
	// status is why the status cannot be decoded, which is no reason to keep the spec
	// out of the cache.
	status error
}

func (f *findings) none() bool { return f.err == nil && len(f.warnings) == 0 && f.status == nil }

// decode returns an object as a config, and what is to be said about it.
func (k *kind) decode(o *object) (config configstore.Config, found findings) {
	config = configstore.Config{Meta: k.meta(o)}
	if config.Spec, found.err = k.decodeSpec(o); found.err != nil {
		return config, found
	}
	config.Status, found.status = k.decodeStatus(o)
	schema := k.schema
	if k.cache.opts.SkipValidation {
		schema.Validate = nil
	}
	found.warnings, found.err = schema.Check(config)
	return config, found
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

// decodeSpec decodes the spec, at once if it has nothing unusual in it, which is so for
// nearly all of them.
func (k *kind) decodeSpec(o *object) (proto.Message, error) {
	if spec, ok := unmarshal(o.Spec, k.schema.NewSpec()); ok {
		return spec, nil
	}
	config, err := k.decodeLenient(o, "spec", o.Spec)
	return config.Spec, err
}

// decodeStatus decodes the status. It is nil if there is none, if it cannot be decoded,
// or if the kind of the schema has none.
func (k *kind) decodeStatus(o *object) (proto.Message, error) {
	empty := k.schema.NewStatus()
	if isNull(o.Status) || empty == nil {
		return nil, nil //nolint:nilnil // There is none.
	}
	if status, ok := unmarshal(o.Status, empty); ok {
		return status, nil
	}
	config, err := k.decodeLenient(o, "status", o.Status)
	return config.Status, err
}

func unmarshal(text json.RawMessage, into proto.Message) (proto.Message, bool) {
	if isNull(text) {
		return into, true
	}
	return into, protojson.Unmarshal(text, into) == nil
}

func isNull(text json.RawMessage) bool { return len(text) == 0 || bytes.Equal(text, []byte("null")) }

// decodeLenient decodes one field as package manifest does with Options.Lenient, and
// says what is wrong with which part of it. On an error there is neither a spec nor a
// status.
func (k *kind) decodeLenient(o *object, field string, text json.RawMessage) (config configstore.Config, err error) {
	data, err := json.Marshal(map[string]any{
		"apiVersion": k.gvk().APIVersion(),
		"kind":       k.gvk().Kind,
		"metadata":   map[string]string{"name": o.Name, "namespace": o.Namespace},
		field:        text,
	})
	if err != nil {
		return config, err
	}
	for _, d := range manifest.Parse(k.cache.Schemas(), data, manifest.Options{Lenient: true, MaxBytes: -1, MaxDocuments: -1}) {
		if d.Err != nil {
			return configstore.Config{}, d.Err
		}
		config = d.Config
	}
	return config, nil
}
