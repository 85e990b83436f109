// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"strings"

	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/proto"

	"github.com/pilotkit/pilotkit/configstore"
)

// The fields of every object.
const (
	fieldAPIVersion = "apiVersion"
	fieldKind       = "kind"
	fieldMetadata   = "metadata"
	fieldSpec       = "spec"
	fieldStatus     = "status"
	fieldItems      = "items"
)

// object reads the object, or the list of objects, at a node. kind is the kind of an object that
// does not specify one, such as an item of a list of one kind.
func (p *parser) object(n *yaml.Node, item string, kind configstore.GroupVersionKind, d *decoder) {
	root := d.object(n)
	if root == nil {
		p.refuse(d, n, Document{Item: item, Foreign: item == ""})
		return
	}
	entries := d.entries(root)
	kind, ok := d.kindOf(entries, root, kind)
	if !ok {
		foreign := item == "" && p.in.foreign(plainText(entries, fieldAPIVersion), plainText(entries, fieldKind))
		p.refuse(d, n, Document{Item: item, Foreign: foreign})
		return
	}
	if itemKind, ok := p.listKind(kind); ok {
		p.list(n, item, itemKind, entries, d)
		return
	}
	// A document with a duplicate field may be two documents that have lost the marker between
	// them, so its identity is unknown.
	sound := len(d.problems) == 0
	schema, known := p.in.schemas.Find(kind)
	if known {
		kind = schema.GroupVersionKind
	}
	meta, named := d.metadata(entries, root)
	sound = sound && named
	meta.GroupVersionKind, meta.Domain = kind, p.in.opts.Domain
	config := configstore.Config{Meta: meta}
	if known {
		d.scope(&config.Meta, schema.ClusterScoped, p.in.opts.DefaultNamespace, entries)
		d.content(&config, schema, entries)
	}
	var key configstore.ConfigKey
	if sound {
		key = config.Key()
	}
	switch {
	case !known:
		p.unknown(d, n, Document{Item: item, Key: key, Foreign: p.in.foreign(kind.APIVersion(), kind.Kind)}, kind, entries)
	case len(d.problems) > 0 && sound:
		p.refuse(d, n, Document{Item: item, Key: key, Config: config})
	case len(d.problems) > 0:
		p.refuse(d, n, Document{Item: item})
	default:
		p.add(d, n, Document{Item: item, Key: key, Config: config})
	}
}

// refuse adds a document that is malformed.
func (p *parser) refuse(d *decoder, n *yaml.Node, doc Document) {
	doc.Err = &Error{Document: p.number, Item: doc.Item, Key: doc.Key, Problems: d.problems, cause: ErrMalformed}
	p.add(d, n, doc)
}

// unknown adds a document of a kind that there is no schema for. What else is
// wrong with it is of no concern.
func (p *parser) unknown(d *decoder, n *yaml.Node, doc Document, kind configstore.GroupVersionKind, entries []entry) {
	d.problems = nil
	at := n
	if e, ok := find(entries, fieldKind); ok {
		at = e.keyNode
	}
	d.fieldErrorf(at, fieldKind, "%v", p.in.schemas.UnknownKind(kind, nil))
	doc.Err = &Error{Document: p.number, Item: doc.Item, Key: doc.Key, Problems: d.problems, cause: configstore.ErrUnknownKind}
	p.add(d, n, doc)
}

// find returns the entry of a key.
func find(entries []entry, key string) (entry, bool) {
	for _, e := range entries {
		if e.key == key {
			return e, true
		}
	}
	return entry{}, false
}

// plainText returns the value of a field, or "" if it is not there or no scalar.
func plainText(entries []entry, key string) string {
	if e, ok := find(entries, key); ok {
		return follow(e.value).Value
	}
	return ""
}

// kindOf reads apiVersion and kind. An object that has neither is of the kind
// that is given.
func (d *decoder) kindOf(entries []entry, root *yaml.Node, given configstore.GroupVersionKind) (configstore.GroupVersionKind, bool) {
	version, hasVersion := find(entries, fieldAPIVersion)
	kind, hasKind := find(entries, fieldKind)
	if !hasVersion && !hasKind && given.Kind != "" {
		return given, true
	}
	before := len(d.problems)
	apiVersion := d.requiredString(version, hasVersion, fieldAPIVersion, root)
	name := d.requiredString(kind, hasKind, fieldKind, root)
	group, v, grouped := strings.Cut(apiVersion, "/")
	if !grouped {
		group, v = "", apiVersion
	}
	if strings.Contains(v, "/") {
		d.fieldErrorf(version.value, fieldAPIVersion, "must be group/version, is %q", shorten(apiVersion))
	}
	return configstore.GroupVersionKind{Group: group, Version: v, Kind: name}, len(d.problems) == before
}

// requiredString reads a string that must be given and not be empty.
func (d *decoder) requiredString(e entry, given bool, field string, parent *yaml.Node) string {
	if !given {
		d.fieldErrorf(parent, field, "is required")
		return ""
	}
	d.pushField(field)
	defer d.pop()
	s, ok := d.text(e.value)
	if ok && s == "" {
		d.errorf(e.value, "is required")
	}
	return s
}

// text reads a string. Null is the empty string.
func (d *decoder) text(n *yaml.Node) (string, bool) {
	s, ok := d.value(n)
	switch {
	case !ok:
	case s.kind == scalarString:
		return s.text, true
	case s.kind == scalarNull:
		return "", true
	default:
		d.errorf(n, "%s", notString(s))
	}
	return "", false
}

// scope applies the default namespace.
func (d *decoder) scope(meta *configstore.Meta, clusterScoped bool, defaultNamespace string, entries []entry) {
	switch {
	case !clusterScoped && meta.Namespace == "":
		meta.Namespace = defaultNamespace
	case clusterScoped && meta.Namespace != "":
		if !d.lenient {
			e, _ := find(entries, fieldMetadata)
			d.pushField(fieldMetadata)
			d.fieldErrorf(e.value, "namespace", "must be empty: the kind is cluster-scoped")
			d.pop()
		}
		meta.Namespace = ""
	}
}

// content reads spec, status and the fields that should not be there.
func (d *decoder) content(config *configstore.Config, schema configstore.Schema, entries []entry) {
	config.Spec = schema.NewSpec()
	for _, e := range entries {
		switch e.key {
		case fieldAPIVersion, fieldKind, fieldMetadata:
			continue
		}
		d.pushField(e.key)
		switch {
		case (e.key == fieldSpec || e.key == fieldStatus) && isNull(e.value):
		case e.key == fieldSpec:
			d.message(e.value, config.Spec.ProtoReflect())
		case e.key == fieldStatus && schema.Status != nil:
			config.Status = schema.NewStatus()
			d.message(e.value, config.Status.ProtoReflect())
		case d.lenient:
		case e.key == fieldStatus:
			d.errorf(e.keyNode, "the kind has no status")
		default:
			d.errorf(e.keyNode, "unknown field")
		}
		d.pop()
	}
	if spec, given := find(entries, fieldSpec); given && !isNull(spec.value) && follow(spec.value).Kind != yaml.MappingNode {
		config.Spec = nil // It has been said why.
	} else if err := proto.CheckInitialized(config.Spec); err != nil && len(d.problems) == 0 {
		d.errorf(&yaml.Node{}, "%s", cleanProtoError(err))
	}
}
