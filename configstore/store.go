// SPDX-License-Identifier: Apache-2.0

package configstore

// NamespaceAll as the namespace of List means every namespace.
const NamespaceAll = ""

// Reader is the reading half of a ConfigStore: the current state of a store, or a snapshot. Kinds
// may be given in any version known to Schemas; objects are returned under the canonical version.
type Reader interface {
	// Schemas returns the kinds that the store keeps.
	Schemas() Schemas

	// Get returns the stored object, or nil if there is none or the kind is
	// unknown. The object is shared and read-only.
	Get(kind GroupVersionKind, name, namespace string) *Config

	// List returns the objects of a kind in a namespace, or in all of them for
	// NamespaceAll, sorted by namespace and name. The slice and the objects are
	// shared and read-only. Nil if there are none or the kind is unknown.
	List(kind GroupVersionKind, namespace string) []*Config
}

// ConfigStore keeps configs by kind, namespace and name. An object that is written
// may leave its kind empty if only one kind has specs of its type.
type ConfigStore interface {
	Reader

	// Create stores a new object and returns its revision. Its ResourceVersion
	// and Generation are ignored; a zero CreationTimestamp becomes the current
	// time. Errors: ErrUnknownKind, ErrInvalid, ErrAlreadyExists, ErrReadOnly.
	Create(c Config) (revision string, err error)

	// Update replaces the object of the same key and returns the new revision.
	// A zero CreationTimestamp keeps the stored one; another one replaces it, for
	// sources that know better. A non-empty ResourceVersion must be the stored
	// one. An update that changes nothing returns the current revision and sends
	// no event. Errors: ErrUnknownKind, ErrInvalid, ErrNotFound, ErrConflict,
	// ErrReadOnly.
	Update(c Config) (revision string, err error)

	// UpdateStatus is Update for the Status alone; everything else in the
	// argument but its key and ResourceVersion is ignored.
	UpdateStatus(c Config) (revision string, err error)

	// Delete removes an object. A non-nil resourceVersion must be the stored
	// one. Errors: ErrUnknownKind, ErrNotFound, ErrConflict, ErrReadOnly.
	Delete(kind GroupVersionKind, name, namespace string, resourceVersion *string) error
}
