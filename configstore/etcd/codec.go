// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"errors"
	"fmt"
	"maps"
	"strconv"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/internal/commit"
	"github.com/pilotkit/pilotkit/configstore/manifest"
)

// domainAnnotation contains, in etcd only, the Domain of an object if it differs from the Domain of
// the Options, because manifests have no field for it.
const domainAnnotation = "pilotkit.io/domain"

// codec converts configs to values and back.
type codec struct {
	keys    *keys
	schemas configstore.Schemas
	domain  string
	// skipRules is Options.SkipValidation.
	skipRules bool
}

// check validates a config before it is written.
func (c *codec) check(config configstore.Config, checked *configstore.Checked) (warnings []configstore.Violation, err error) {
	if _, reserved := config.Annotations[domainAnnotation]; reserved {
		return nil, &configstore.ValidationError{Key: config.Key(), Violations: []configstore.Violation{
			{Field: "metadata.annotations", Message: domainAnnotation + " is reserved for this store"},
		}}
	}
	return c.validate(config, checked)
}

func (c *codec) validate(config configstore.Config, checked *configstore.Checked) (warnings []configstore.Violation, err error) {
	if c.skipRules {
		return nil, commit.CheckShape(c.schemas, &config)
	}
	return c.schemas.Recheck(config, checked)
}

// encode returns the value of an object.
func (c *codec) encode(config configstore.Config) (string, error) {
	config.ResourceVersion = ""
	if config.Domain != c.domain {
		config.Annotations = maps.Clone(config.Annotations)
		if config.Annotations == nil {
			config.Annotations = map[string]string{}
		}
		config.Annotations[domainAnnotation] = config.Domain
	}
	if unread := configstore.Unread(config.Spec); len(unread) > 0 { // JSON cannot express it.
		return "", &configstore.ValidationError{Key: config.Key(), Violations: unread}
	}
	data, err := manifest.MarshalJSON(config)
	if err != nil {
		return "", &configstore.ValidationError{
			Key: config.Key(), Violations: []configstore.Violation{{Message: "cannot be stored: " + err.Error()}},
		}
	}
	return string(data), nil
}

// decode returns the object of a key in etcd. The result is the same in every replica. On an error
// it returns the key of the object if it is known, and the fields that could be decoded.
func (c *codec) decode(kv *mvccpb.KeyValue) (config configstore.Config, object configstore.ConfigKey, err error) {
	if object, err = c.keys.parse(string(kv.GetKey())); err != nil {
		return config, object, err
	}
	if config, err = c.parse(kv.GetValue()); err != nil {
		return config, object, err
	}
	if key := config.Key(); key != object {
		return config, object, fmt.Errorf("%w: it is %s", ErrMismatch, key.Object())
	}
	if domain, own := config.Annotations[domainAnnotation]; own {
		config.Domain = domain
		if delete(config.Annotations, domainAnnotation); len(config.Annotations) == 0 {
			config.Annotations = nil
		}
	}
	stamp(&config, kv)
	_, err = c.validate(config, nil)
	return config, object, err
}

// stamp sets the metadata that comes from the key in etcd instead of the value.
func stamp(config *configstore.Config, kv *mvccpb.KeyValue) {
	if config.CreationTimestamp.IsZero() {
		config.CreationTimestamp = time.Unix(0, kv.GetCreateRevision()).UTC()
	}
	config.ResourceVersion = formatRevision(kv.GetModRevision())
}

// placeholder returns the placeholder of an object that cannot be decoded, if its kind has
// placeholders.
func (c *codec) placeholder(kv *mvccpb.KeyValue, read configstore.Config, object configstore.ConfigKey, err error) (configstore.Config, bool) {
	schema, known := c.schemas.Find(object.Kind)
	if !known {
		return read, false
	}
	if read.Domain = c.domain; read.Key() != object {
		read.Spec = nil // the spec of another object
	}
	read.Name, read.Namespace = object.Name, object.Namespace
	stamp(&read, kv)
	return schema.Placeholder(read, err)
}

// parse parses a value, which must contain exactly one object.
func (c *codec) parse(value []byte) (config configstore.Config, err error) {
	docs := manifest.Parse(c.schemas, value, manifest.Options{Domain: c.domain, MaxBytes: -1, MaxDocuments: 2})
	switch {
	case len(docs) == 0:
		return config, fmt.Errorf("%w: the value is empty", manifest.ErrMalformed)
	case docs[0].Err != nil:
		return docs[0].Config, valueError(docs[0].Err)
	case len(docs) > 1 || docs[0].Item != "":
		return config, fmt.Errorf("%w: the value has to be one object", manifest.ErrMalformed)
	}
	return docs[0].Config, nil
}

// valueError returns an error of package manifest without the document number.
func valueError(err error) error {
	if e, ok := errors.AsType[*manifest.Error](err); ok {
		e.Document = 0
	}
	return err
}

func formatRevision(revision int64) string { return strconv.FormatInt(revision, 10) }
