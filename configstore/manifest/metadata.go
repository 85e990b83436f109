// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/pilotkit/pilotkit/configstore"
)

// metadata reads the metadata of an object. It returns false if it is not clear
// which object it is.
func (d *decoder) metadata(entries []entry, root *yaml.Node) (meta configstore.Meta, sound bool) {
	e, ok := find(entries, fieldMetadata)
	d.pushField(fieldMetadata)
	defer d.pop()
	if !ok {
		d.fieldErrorf(root, "name", "is required")
		return meta, false
	}
	mapping := d.object(e.value)
	if mapping == nil {
		return meta, false
	}
	before := len(d.problems)
	fields := d.entries(mapping)
	name, hasName := find(fields, "name")
	meta.Name = d.requiredString(name, hasName, "name", mapping)
	if namespace, ok := find(fields, "namespace"); ok {
		d.pushField("namespace")
		meta.Namespace, _ = d.text(namespace.value)
		d.pop()
	}
	sound = len(d.problems) == before
	for _, f := range fields {
		d.pushField(f.key)
		d.metadataField(f, &meta)
		d.pop()
	}
	return meta, sound
}

// metadataField reads one field. The fields of Kubernetes' ObjectMeta that
// configstore.Meta has no place for are accepted: dumps of a cluster have them.
func (d *decoder) metadataField(f entry, meta *configstore.Meta) {
	switch f.key {
	case "name", "namespace":
	case "uid":
		meta.UID, _ = d.text(f.value)
	case "resourceVersion":
		meta.ResourceVersion, _ = d.text(f.value)
	case "generation":
		meta.Generation = d.integer(f.value)
	case "creationTimestamp":
		meta.CreationTimestamp = d.timestamp(f.value)
	case "labels":
		meta.Labels = d.stringMap(f.value)
	case "annotations":
		meta.Annotations = d.stringMap(f.value)
	case "ownerReferences":
		meta.OwnerReferences = d.owners(f.value)
	case "generateName", "selfLink", "deletionTimestamp", "deletionGracePeriodSeconds", "finalizers",
		"managedFields", "clusterName", "initializers":
	default:
		if !d.lenient {
			d.errorf(f.keyNode, "unknown field")
		}
	}
}

func (d *decoder) integer(n *yaml.Node) int64 {
	s, ok := d.value(n)
	if !ok || s.kind == scalarNull {
		return 0
	}
	i, ok := parseInt(s.text, 64)
	if !ok || s.kind != scalarInt && s.kind != scalarFloat {
		d.errorf(n, "must be an integer of 64 bits, is %s", s.describe())
		return 0
	}
	return i
}

func (d *decoder) timestamp(n *yaml.Node) time.Time {
	s, ok := d.text(n)
	if !ok || s == "" {
		return time.Time{}
	}
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		d.errorf(n, `must be a time such as "2024-01-31T12:00:00Z", is %q`, shorten(s))
		return time.Time{}
	}
	return t.UTC()
}

// stringMap reads labels or annotations. As it is to Kubernetes, null is the
// empty string.
func (d *decoder) stringMap(n *yaml.Node) map[string]string {
	if isNull(n) {
		return nil
	}
	mapping := d.object(n)
	if mapping == nil || len(mapping.Content) == 0 {
		return nil
	}
	fields := d.entries(mapping)
	out := make(map[string]string, len(fields))
	for _, f := range fields {
		d.pushKey(f.key)
		if s, ok := d.text(f.value); ok {
			out[f.key] = s
		}
		d.pop()
	}
	return out
}

func (d *decoder) owners(n *yaml.Node) []configstore.OwnerReference {
	if isNull(n) {
		return nil
	}
	sequence := d.list(n)
	if sequence == nil || len(sequence.Content) == 0 {
		return nil
	}
	out := make([]configstore.OwnerReference, 0, len(sequence.Content))
	for i, item := range sequence.Content {
		d.pushIndex(i)
		if mapping := d.object(item); mapping != nil {
			out = append(out, d.owner(mapping))
		}
		d.pop()
	}
	return out
}

func (d *decoder) owner(mapping *yaml.Node) configstore.OwnerReference {
	var ref configstore.OwnerReference
	for _, f := range d.entries(mapping) {
		d.pushField(f.key)
		switch f.key {
		case "apiVersion":
			ref.APIVersion, _ = d.text(f.value)
		case "kind":
			ref.Kind, _ = d.text(f.value)
		case "name":
			ref.Name, _ = d.text(f.value)
		case "uid":
			ref.UID, _ = d.text(f.value)
		case "controller":
			ref.Controller = d.boolean(f.value)
		case "blockOwnerDeletion":
			ref.BlockOwnerDeletion = d.boolean(f.value)
		default:
			if !d.lenient {
				d.errorf(f.keyNode, "unknown field")
			}
		}
		d.pop()
	}
	return ref
}

func (d *decoder) boolean(n *yaml.Node) bool {
	s, ok := d.value(n)
	if ok && s.kind != scalarBool && s.kind != scalarNull {
		d.errorf(n, "must be true or false, is %s", s.describe())
	}
	return s.bool
}
