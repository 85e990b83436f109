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

// decoder makes configs of the objects of one kind.
type decoder struct {
	schema *configstore.Schema
	// schemas has the schema.
	schemas configstore.Schemas
	// domain is that of all objects.
	domain         string
	skipValidation bool
}

// decoder is that of the cache.
func (k *kind) decoder() *decoder {
	return &decoder{schema: &k.schema, schemas: k.cache.Schemas(), domain: k.cache.opts.Domain, skipValidation: k.cache.opts.SkipValidation}
}

// decode returns an object as a config, and what is to be said about it. If that is an error, the spec is what could be
// read of it, or nil.
func (d *decoder) decode(o *object) (config configstore.Config, found findings) {
	config = configstore.Config{Meta: d.meta(o)}
	if config.Spec, found.err = d.decodeSpec(o); found.err != nil {
		return config, found
	}
	config.Status, found.status = d.decodeStatus(o)
	schema := *d.schema
	if d.skipValidation {
		schema.Validate = nil
	}
	found.warnings, found.err = schema.Check(config)
	return config, found
}

func (d *decoder) meta(o *object) configstore.Meta {
	return configstore.Meta{
		GroupVersionKind:  d.schema.GroupVersionKind,
		UID:               string(o.UID),
		Name:              o.Name,
		Namespace:         o.Namespace,
		Domain:            d.domain,
		Labels:            o.Labels,
		Annotations:       o.Annotations,
		ResourceVersion:   o.ResourceVersion,
		CreationTimestamp: o.CreationTimestamp.Time,
		OwnerReferences:   owners(o.OwnerReferences),
		Generation:        o.Generation,
	}
}

// decodeSpec decodes the spec, at once if it has nothing unusual in it, which is so for
// nearly all of them. With an error it returns what could be read, or nil.
func (d *decoder) decodeSpec(o *object) (proto.Message, error) {
	if spec, ok := unmarshal(o.Spec, d.schema.NewSpec()); ok {
		return spec, nil
	}
	config, err := d.decodeLenient(o, "spec", o.Spec)
	return config.Spec, err
}

// decodeStatus decodes the status. It is nil if there is none, if it cannot be decoded,
// or if the kind of the schema has none.
func (d *decoder) decodeStatus(o *object) (proto.Message, error) {
	empty := d.schema.NewStatus()
	if isNull(o.Status) || empty == nil {
		return nil, nil //nolint:nilnil // There is none.
	}
	if status, ok := unmarshal(o.Status, empty); ok {
		return status, nil
	}
	config, err := d.decodeLenient(o, "status", o.Status)
	if err != nil {
		return nil, err
	}
	return config.Status, nil
}

func unmarshal(text json.RawMessage, into proto.Message) (proto.Message, bool) {
	if isNull(text) {
		return into, true
	}
	return into, protojson.Unmarshal(text, into) == nil
}

func isNull(text json.RawMessage) bool { return len(text) == 0 || bytes.Equal(text, []byte("null")) }

// decodeLenient decodes one field as package manifest does with Options.Lenient, and
// says what is wrong with which part of it. On an error there is what could be read.
func (d *decoder) decodeLenient(o *object, field string, text json.RawMessage) (configstore.Config, error) {
	return d.parse(o, field, text, manifest.Options{Lenient: true})
}

// parse decodes one field as package manifest does.
func (d *decoder) parse(o *object, field string, text json.RawMessage, opts manifest.Options) (config configstore.Config, err error) {
	data, err := json.Marshal(map[string]any{
		"apiVersion": d.schema.GroupVersionKind.APIVersion(),
		"kind":       d.schema.GroupVersionKind.Kind,
		"metadata":   map[string]string{"name": o.Name, "namespace": o.Namespace},
		field:        text,
	})
	if err != nil {
		return config, err
	}
	opts.MaxBytes, opts.MaxDocuments = -1, -1
	for _, doc := range manifest.Parse(d.schemas, data, opts) {
		if doc.Err != nil {
			return doc.Config, doc.Err
		}
		config = doc.Config
	}
	return config, nil
}
