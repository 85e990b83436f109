// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/pilotkit/pilotkit/configstore"
)

// Marshal returns the YAML form of a config, in the style of kubectl: fields in
// alphabetical order, in camelCase, empty ones left out. The same config gives
// the same bytes. Parse makes the same config of them, except for the Domain,
// which manifests do not hold. It is an error if the config has no name, kind or
// spec, holds text that is not UTF-8, a creation time outside of the years 1 to
// 9999, or a google.protobuf.Any of an unknown type.
//
// The parts of a spec that cannot be read (configstore.Unread) are lost, but not that there are any:
// each is a field of the spec that no kind has, so that Parse refuses the config or, leniently, makes
// one that is unread in the same places. A closed policy stays closed.
func Marshal(c configstore.Config) ([]byte, error) { return marshal(c, encodeYAML) }

// MarshalJSON returns the JSON form of a config, indented by four blanks and
// otherwise as Marshal does.
func MarshalJSON(c configstore.Config) ([]byte, error) { return marshal(c, encodeJSON) }

func marshal(c configstore.Config, encode func(tree map[string]any) ([]byte, error)) (out []byte, err error) {
	tree, err := treeOf(c)
	if err == nil {
		out, err = encode(tree)
	}
	if err != nil {
		return nil, fmt.Errorf("marshal %s: %w", c.Key().Object(), err)
	}
	return out, nil
}

func encodeJSON(tree map[string]any) ([]byte, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "    ")
	err := enc.Encode(tree)
	return out.Bytes(), err
}

// treeOf returns the object in the types of encoding/json, numbers as
// json.Number.
func treeOf(c configstore.Config) (map[string]any, error) {
	kind := c.GroupVersionKind
	switch {
	case kind.Kind == "" || kind.Version == "":
		return nil, errors.New("the kind is required")
	case c.Name == "":
		return nil, errors.New("metadata.name is required")
	case c.Spec == nil:
		return nil, errors.New("spec is required")
	}
	meta, err := metadataTree(c.Meta)
	if err != nil {
		return nil, err
	}
	tree := map[string]any{fieldAPIVersion: kind.APIVersion(), fieldKind: kind.Kind, fieldMetadata: meta}
	if tree[fieldSpec], err = messageTree(c.Spec); err != nil {
		return nil, fmt.Errorf("spec: %w", err)
	}
	addUnread(tree[fieldSpec], c.Spec)
	if c.Status != nil {
		if tree[fieldStatus], err = messageTree(c.Status); err != nil {
			return nil, fmt.Errorf("status: %w", err)
		}
	}
	return tree, nil
}

// unreadSuffix makes a name of a field that no kind has.
const unreadSuffix = "[unread]"

// addUnread adds the unreadable parts of a spec to its tree: the place and the problem of each.
func addUnread(tree any, spec proto.Message) {
	fields, _ := tree.(map[string]any)
	if fields == nil {
		return // The spec is a well-known type, which has no fields in JSON.
	}
	known := spec.ProtoReflect().Descriptor().Fields()
	for _, u := range configstore.Unread(spec) {
		at := strings.TrimPrefix(strings.TrimPrefix(u.Field, fieldSpec), ".")
		if at == "" || known.ByJSONName(at) != nil {
			at += unreadSuffix
		}
		fields[at] = u.Message
	}
}

// messageTree goes by protojson's bytes, whose white space is random by intent.
func messageTree(m proto.Message) (any, error) {
	data, err := protojson.Marshal(m)
	if err != nil {
		return nil, errors.New(cleanProtoError(err))
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var tree any
	err = dec.Decode(&tree)
	return tree, err
}

func metadataTree(m configstore.Meta) (map[string]any, error) {
	tree := map[string]any{}
	set := func(name, value string) {
		if value != "" {
			tree[name] = value
		}
	}
	set("name", m.Name)
	set("namespace", m.Namespace)
	set("uid", m.UID)
	set("resourceVersion", m.ResourceVersion)
	if m.Generation != 0 {
		tree["generation"] = json.Number(strconv.FormatInt(m.Generation, 10))
	}
	if !m.CreationTimestamp.IsZero() {
		t := m.CreationTimestamp.UTC()
		if t.Year() < 1 || t.Year() > 9999 {
			return nil, fmt.Errorf("metadata.creationTimestamp: the year %d cannot be written", t.Year())
		}
		set("creationTimestamp", t.Format(time.RFC3339Nano))
	}
	if len(m.Labels) > 0 {
		tree["labels"] = mapTree(m.Labels)
	}
	if len(m.Annotations) > 0 {
		tree["annotations"] = mapTree(m.Annotations)
	}
	if len(m.OwnerReferences) > 0 {
		owners := make([]any, len(m.OwnerReferences))
		for i, ref := range m.OwnerReferences {
			owners[i] = ownerTree(ref)
		}
		tree["ownerReferences"] = owners
	}
	return tree, checkText(fieldMetadata, tree)
}

func mapTree(m map[string]string) map[string]any {
	tree := make(map[string]any, len(m))
	for k, v := range m {
		tree[k] = v
	}
	return tree
}

func ownerTree(ref configstore.OwnerReference) map[string]any {
	tree := map[string]any{"apiVersion": ref.APIVersion, "kind": ref.Kind, "name": ref.Name, "uid": ref.UID}
	if ref.Controller {
		tree["controller"] = true
	}
	if ref.BlockOwnerDeletion {
		tree["blockOwnerDeletion"] = true
	}
	return tree
}

// checkText finds text that is not UTF-8, which neither YAML nor JSON can hold.
func checkText(path string, v any) error {
	switch v := v.(type) {
	case string:
		if !utf8.ValidString(v) {
			return fmt.Errorf("%s is not UTF-8 text", path)
		}
	case map[string]any:
		for key, value := range v {
			if !utf8.ValidString(key) {
				return fmt.Errorf("%s has a key that is not UTF-8 text", path)
			}
			if err := checkText(path+"."+key, value); err != nil {
				return err
			}
		}
	case []any:
		for i, value := range v {
			if err := checkText(path+"["+strconv.Itoa(i)+"]", value); err != nil {
				return err
			}
		}
	}
	return nil
}
