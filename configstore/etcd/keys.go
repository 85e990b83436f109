// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/pilotkit/pilotkit/configstore"
)

// keyParts is the number of parts of a key: group, kind, namespace and name.
const keyParts = 4

// keys converts the keys of objects to the keys in etcd and back.
type keys struct {
	// prefix ends with a slash.
	prefix string
	// kinds contains the canonical kinds of the schemas by group and kind.
	kinds   map[groupKind]configstore.GroupVersionKind
	schemas configstore.Schemas
}

type groupKind struct{ group, kind string }

func newKeys(prefix string, schemas configstore.Schemas) (*keys, error) {
	k := &keys{prefix: prefix + "/", schemas: schemas, kinds: map[groupKind]configstore.GroupVersionKind{}}
	for _, s := range schemas.All() {
		gvk := s.GroupVersionKind
		at := groupKind{gvk.Group, gvk.Kind}
		if other, taken := k.kinds[at]; taken {
			return nil, fmt.Errorf("the kinds %s and %s would have the same keys: they differ in their version only", other, gvk)
		}
		k.kinds[at] = gvk
	}
	return k, nil
}

// of returns the key in etcd of an object.
func (k *keys) of(key configstore.ConfigKey) string {
	return k.prefix + escape(key.Kind.Group) + "/" + escape(key.Kind.Kind) + "/" + escape(key.Namespace) + "/" + escape(key.Name)
}

// end returns the end of the range of all keys.
func (k *keys) end() string { return k.prefix[:len(k.prefix)-1] + string(rune('/'+1)) }

// parse returns the object of a key. The error matches ErrKey, or configstore.ErrUnknownKind if the
// kind is unknown.
func (k *keys) parse(key string) (object configstore.ConfigKey, err error) {
	parts := strings.Split(strings.TrimPrefix(key, k.prefix), "/")
	if len(parts) != keyParts {
		return object, fmt.Errorf("%w: it has %d parts after the prefix, not group/Kind/namespace/name", ErrKey, len(parts))
	}
	for i, part := range parts {
		text, err := url.PathUnescape(part)
		if err != nil {
			return object, fmt.Errorf("%w: %w", ErrKey, err)
		}
		if escape(text) != part {
			return object, fmt.Errorf("%w: %q has to be written %q", ErrKey, part, escape(text))
		}
		parts[i] = text
	}
	if parts[3] == "" {
		return object, fmt.Errorf("%w: the name is empty", ErrKey)
	}
	kind, known := k.kinds[groupKind{parts[0], parts[1]}]
	if !known {
		kind = configstore.GroupVersionKind{Group: parts[0], Kind: parts[1]}
		err = k.schemas.UnknownKind(kind, nil)
	}
	return configstore.ConfigKey{Kind: kind, Namespace: parts[2], Name: parts[3]}, err
}

// escape writes the percent sign, the slash and characters other than printable ASCII as %XX, so
// that no part of a key contains the delimiter.
func escape(s string) string {
	var out strings.Builder
	out.Grow(len(s))
	for i := range len(s) {
		if c := s[i]; c > ' ' && c < 0x7f && c != '%' && c != '/' {
			out.WriteByte(c)
		} else {
			fmt.Fprintf(&out, "%%%02X", c)
		}
	}
	return out.String()
}
