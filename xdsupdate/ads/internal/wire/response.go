// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/resource"
)

// ResourceSize is the approximate number of bytes that AppendResource appends for a resource.
func ResourceSize(r *resource.State) int { return len(r.Value) + len(r.TypeURL) + len(r.Name) + 48 }

// AppendResource appends a resource as an element of the field "resources". A virtual host without content has its name
// as an alias (Envoy, "Virtual Host Discovery Service").
func AppendResource(out []byte, r *resource.State, delta bool) []byte {
	if delta && r.Marker == resource.Absent {
		return appendName(out, r.Name)
	}
	const resources, anyType, anyValue, resourceVersion, resourceAny, resourceName = 2, 1, 2, 1, 2, 3
	size, named := len(r.Value), resource.NamesMessage(r.TypeURL)
	if named {
		size = 1 + protowire.SizeBytes(len(r.TypeURL)) + 1 + protowire.SizeBytes(len(r.Value))
	}
	out = protowire.AppendTag(out, resources, protowire.BytesType)
	if delta {
		var digits [16]byte
		v := resource.AppendVersion(digits[:0], r.Hash)
		whole := 1 + protowire.SizeBytes(len(v)) + 1 + protowire.SizeBytes(size) + 1 + protowire.SizeBytes(len(r.Name))
		out = protowire.AppendVarint(out, uint64(whole))
		out = protowire.AppendTag(out, resourceVersion, protowire.BytesType)
		out = protowire.AppendBytes(out, v)
		out = protowire.AppendTag(out, resourceName, protowire.BytesType)
		out = protowire.AppendString(out, r.Name)
		out = protowire.AppendTag(out, resourceAny, protowire.BytesType)
	}
	out = protowire.AppendVarint(out, uint64(size))
	if !named {
		return append(out, r.Value...)
	}
	out = protowire.AppendTag(out, anyType, protowire.BytesType)
	out = protowire.AppendString(out, r.TypeURL)
	out = protowire.AppendTag(out, anyValue, protowire.BytesType)
	return protowire.AppendBytes(out, r.Value)
}

func appendName(out []byte, name string) []byte {
	const resources, resourceName, resourceAlias = 2, 3, 4
	field := 1 + protowire.SizeBytes(len(name))
	out = protowire.AppendTag(out, resources, protowire.BytesType)
	out = protowire.AppendVarint(out, uint64(2*field))
	out = protowire.AppendTag(out, resourceName, protowire.BytesType)
	out = protowire.AppendString(out, name)
	out = protowire.AppendTag(out, resourceAlias, protowire.BytesType)
	return protowire.AppendString(out, name)
}
