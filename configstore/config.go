// SPDX-License-Identifier: Apache-2.0

package configstore

import (
	"maps"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"
)

// Meta is the metadata of an object: its key, labels and annotations, and the fields that a store
// maintains.
type Meta struct {
	// GroupVersionKind is the kind, in its canonical version.
	GroupVersionKind GroupVersionKind
	// UID is the identity given by the object's origin; may be empty.
	UID string
	// Name and Namespace are, with the kind, the object's key. Namespace is
	// empty for cluster-scoped kinds.
	Name      string
	Namespace string
	// Domain is the DNS suffix of the mesh, for example "cluster.local". It is
	// not part of the key.
	Domain      string
	Labels      map[string]string
	Annotations map[string]string
	// ResourceVersion is set by the store and may be compared for equality only. Empty means that
	// the object was never stored; in a write, empty replaces any stored version.
	ResourceVersion string
	// CreationTimestamp decides between competing objects: usually the oldest wins, and among
	// objects of equal age the first by namespace and name. The store sets it on Create if it is
	// zero; an Update with a zero value keeps it. A source without times, such as files, gives its
	// objects time.Unix(0, 0), because the times of reading them differ from process to process.
	CreationTimestamp time.Time
	OwnerReferences   []OwnerReference
	// Generation is set by the store: 1 on Create, one more whenever the spec
	// changes.
	Generation int64
}

// OwnerReference names the object that this one belongs to, in the fields of
// Kubernetes' ownerReferences.
type OwnerReference struct {
	APIVersion         string
	Kind               string
	Name               string
	UID                string
	Controller         bool
	BlockOwnerDeletion bool
}

// Config is one object: its metadata, its content and, optionally, its status. It is passed by
// value; its maps and messages are shared and read-only.
type Config struct {
	Meta
	Spec   proto.Message
	Status proto.Message
}

// Key returns the object's key.
func (c Config) Key() ConfigKey {
	return ConfigKey{Kind: c.GroupVersionKind, Name: c.Name, Namespace: c.Namespace}
}

// Clone returns a deep copy, which the caller may modify.
func (c Config) Clone() Config {
	c.Labels = maps.Clone(c.Labels)
	c.Annotations = maps.Clone(c.Annotations)
	c.OwnerReferences = slices.Clone(c.OwnerReferences)
	if c.Spec != nil {
		c.Spec = proto.Clone(c.Spec)
	}
	if c.Status != nil {
		c.Status = proto.Clone(c.Status)
	}
	return c
}

// Equal reports whether c and d are the same object in the same state: all of
// Meta, Spec and Status. Nil and empty maps are equal, as are times that denote
// the same instant. Any two Configs can be compared.
func (c Config) Equal(d Config) bool {
	return c.GroupVersionKind == d.GroupVersionKind &&
		c.Name == d.Name && c.Namespace == d.Namespace &&
		c.UID == d.UID && c.Domain == d.Domain &&
		c.ResourceVersion == d.ResourceVersion && c.Generation == d.Generation &&
		c.CreationTimestamp.Equal(d.CreationTimestamp) &&
		maps.Equal(c.Labels, d.Labels) && maps.Equal(c.Annotations, d.Annotations) &&
		slices.Equal(c.OwnerReferences, d.OwnerReferences) &&
		EqualMessage(c.Spec, d.Spec) && EqualMessage(c.Status, d.Status)
}

// EqualMessage reports whether two specs or statuses are equal. Unlike
// proto.Equal it takes nil interfaces, and an identical pointer costs nothing.
func EqualMessage(a, b proto.Message) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return a == b || proto.Equal(a, b)
}
