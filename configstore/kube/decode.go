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

// findings are the problems of a version of an object.
type findings struct {
	// err is the reason why the object is not in the cache. It matches manifest.ErrMalformed or
	// configstore.ErrInvalid.
	err error
	// kept is set if the last good state of the object stays, and closed if a placeholder replaces it.
	kept, closed bool
	// warnings are the warnings of its schema.
	warnings []configstore.Violation
	// status is the error of a status that cannot be decoded. The spec is published nevertheless.
	status error
}

func (f *findings) none() bool { return f.err == nil && len(f.warnings) == 0 && f.status == nil }

// decoder converts the objects of one kind to configs.
type decoder struct {
	schema *configstore.Schema
	// schemas contains the schema.
	schemas configstore.Schemas
	// domain is the Domain of all configs.
	domain         string
	skipValidation bool
}

// decoder returns a decoder with the options of the cache.
func (k *kind) decoder() *decoder {
	return &decoder{schema: &k.schema, schemas: k.cache.Schemas(), domain: k.cache.opts.Domain, skipValidation: k.cache.opts.SkipValidation}
}

// decode returns an object as a config, and the problems that it found. On an error the spec
// contains the fields that could be decoded, or is nil.
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

// decodeSpec decodes the spec. Nearly all specs take the fast path of unmarshal. On an error it
// returns the fields that could be decoded, or nil.
func (d *decoder) decodeSpec(o *object) (proto.Message, error) {
	if spec, ok := unmarshal(o.Spec, d.schema.NewSpec()); ok {
		return spec, nil
	}
	config, err := d.decodeLenient(o, "spec", o.Spec)
	return config.Spec, err
}

// decodeStatus decodes the status. It returns nil if the object or the kind has no status, or if
// the status cannot be decoded.
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

// decodeLenient decodes one field as package manifest does with Options.Lenient. The error names
// the paths of the invalid fields. On an error the config contains the fields that could be
// decoded.
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
