// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"maps"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/timestamppb"
	mcp "istio.io/api/mcp/v1alpha1"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/internal/excerpt"
)

// typePrefix begins the type URLs of messages.
const typePrefix = "type.googleapis.com/"

// resourceTypeURL is the type URL of the Any that a resource is.
const resourceTypeURL = typePrefix + "istio.mcp.v1alpha1.Resource"

// typeURL returns the type URL of a kind, with "core" for the empty group.
func typeURL(kind configstore.GroupVersionKind) string { return kind.String() }

// resourceName returns the name under which an object travels.
func resourceName(name, namespace string) string { return namespace + "/" + name }

// splitName returns what resourceName was made of; false if it was not.
func splitName(resource string) (name, namespace string, ok bool) {
	namespace, name, ok = strings.Cut(resource, "/")
	return name, namespace, ok && name != "" && !strings.Contains(name, "/")
}

// fieldError describes an invalid field of a resource.
type fieldError struct {
	// field is the path of the field in mcp.Resource.
	field, reason string
}

// Error returns "field: reason".
func (e *fieldError) Error() string { return e.field + ": " + e.reason }

func fieldErrorf(field, format string, args ...any) error {
	return &fieldError{field: field, reason: excerpt.Sprintf(format, args...)}
}

// toResource returns an object as a resource with the ResourceVersion as its version. Equal objects
// give equal bytes. The error names the field.
func toResource(c *configstore.Config) (*mcp.Resource, error) {
	name := resourceName(c.Name, c.Namespace)
	if n, ns, ok := splitName(name); !ok || n != c.Name || ns != c.Namespace {
		return nil, fieldErrorf("metadata.name", `must be "namespace/name", is %q`, name)
	}
	if c.Spec == nil || !c.Spec.ProtoReflect().IsValid() {
		return nil, fieldErrorf("body", "the object has no spec")
	}
	body, err := (proto.MarshalOptions{Deterministic: true}).Marshal(c.Spec)
	if err != nil {
		return nil, fieldErrorf("body", "%v", err)
	}
	metadata := &mcp.Metadata{Name: name, Version: c.ResourceVersion, Labels: c.Labels, Annotations: c.Annotations}
	if !c.CreationTimestamp.IsZero() {
		metadata.CreateTime = timestamppb.New(c.CreationTimestamp)
		if err := metadata.GetCreateTime().CheckValid(); err != nil {
			return nil, fieldErrorf("metadata.createTime", "%v", err)
		}
	}
	return &mcp.Resource{Metadata: metadata, Body: &anypb.Any{TypeUrl: typePrefix + messageName(c.Spec), Value: body}}, nil
}

func messageName(m proto.Message) string { return string(m.ProtoReflect().Descriptor().FullName()) }

// decode returns the object of a resource, in the canonical version of its kind, with
// the sender's version as ResourceVersion. It does not validate the object. The error
// is a *fieldError.
func decode(resource *anypb.Any, schema *configstore.Schema) (c configstore.Config, err error) {
	if resource.GetTypeUrl() != resourceTypeURL {
		return c, fieldErrorf("resource", "must be a %s, is a %q", resourceTypeURL, resource.GetTypeUrl())
	}
	var m mcp.Resource
	if err := proto.Unmarshal(resource.GetValue(), &m); err != nil {
		return c, fieldErrorf("resource", "%v", err)
	}
	c.Meta, err = decodeMetadata(m.GetMetadata())
	if err != nil {
		return c, err
	}
	c.GroupVersionKind = schema.GroupVersionKind
	c.Spec, err = decodeBody(m.GetBody(), schema)
	return c, err
}

func decodeMetadata(m *mcp.Metadata) (meta configstore.Meta, err error) {
	if m == nil {
		return meta, fieldErrorf("metadata", "is required")
	}
	name, namespace, ok := splitName(m.GetName())
	if !ok {
		return meta, fieldErrorf("metadata.name", `must be "namespace/name", is %q`, m.GetName())
	}
	var created time.Time
	if at := m.GetCreateTime(); at != nil {
		if err := at.CheckValid(); err != nil {
			return meta, fieldErrorf("metadata.createTime", "%v", err)
		}
		created = at.AsTime()
	}
	return configstore.Meta{
		Name: name, Namespace: namespace, ResourceVersion: m.GetVersion(), CreationTimestamp: created,
		Labels: maps.Clone(m.GetLabels()), Annotations: maps.Clone(m.GetAnnotations()),
	}, nil
}

func decodeBody(body *anypb.Any, schema *configstore.Schema) (proto.Message, error) {
	if body == nil {
		return nil, fieldErrorf("body", "is required")
	}
	// The prefix is free, as for every Any.
	if want, got := messageName(schema.Spec), string(body.MessageName()); got != want {
		return nil, fieldErrorf("body", "must be a %s, is a %q", want, body.GetTypeUrl())
	}
	spec := schema.NewSpec()
	if err := proto.Unmarshal(body.GetValue(), spec); err != nil {
		return nil, fieldErrorf("body", "%v", err)
	}
	return spec, nil
}

// The numbers of Resource.metadata and of Metadata.name.
const (
	metadataField = 1
	nameField     = 1
)

// peekName reads the name of a resource without decoding it, so that other errors in the resource
// do not matter. It returns the last name in the readable part of the bytes, which is the one that
// decoding would give. ok is false if the resource has no valid object name.
func peekName(resource *anypb.Any) (name, namespace string, ok bool) {
	var full []byte
	rest := eachField(resource.GetValue(), metadataField, func(metadata []byte) {
		eachField(metadata, nameField, func(value []byte) { full = value })
	})
	if metadata, ok := cutShort(rest, metadataField); ok {
		eachField(metadata, nameField, func(value []byte) { full = value })
	}
	return splitName(string(full))
}

// eachField calls visit with every value of a field that is bytes, and returns what
// begins with the first field that cannot be read.
func eachField(message []byte, number protowire.Number, visit func(value []byte)) (rest []byte) {
	for len(message) > 0 {
		field, kind, tag := protowire.ConsumeTag(message)
		if tag < 0 {
			return message
		}
		n := protowire.ConsumeFieldValue(field, kind, message[tag:])
		if n < 0 {
			return message
		}
		if field == number && kind == protowire.BytesType {
			value, _ := protowire.ConsumeBytes(message[tag:])
			visit(value)
		}
		message = message[tag+n:]
	}
	return nil
}

// cutShort returns the available part of the value of a field at the end of a truncated message.
func cutShort(message []byte, number protowire.Number) (value []byte, ok bool) {
	field, kind, tag := protowire.ConsumeTag(message)
	if tag < 0 || field != number || kind != protowire.BytesType {
		return nil, false
	}
	_, n := protowire.ConsumeVarint(message[tag:])
	if n < 0 {
		return nil, false
	}
	return message[tag+n:], true
}
