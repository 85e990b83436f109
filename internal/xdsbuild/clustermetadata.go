// SPDX-License-Identifier: Apache-2.0

package xdsbuild

import (
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/pilotkit/pilotkit/registry"
)

// The keys of the metadata of a cluster.
const (
	pilotkitFilter = "pilotkit"
	portKey        = "default_original_port"
	servicesKey    = "services"
	namesKey       = "subject_alt_names"
)

// metadata returns the metadata of the cluster: encoded as unknown fields of the message, or decoded
// unless EncodedMetadata is set.
func (u *Upstream) metadata() *core.Metadata {
	m, encoded := &core.Metadata{}, encodedClusterMetadata(u.Service, u.Port, u.Identities)
	if u.EncodedMetadata {
		m.ProtoReflect().SetUnknown(encoded)
	} else {
		_ = proto.Unmarshal(encoded, m) // it is always valid
	}
	return m
}

// encodedClusterMetadata returns encoded metadata. It has no maps, which are expensive to build and to
// encode.
func encodedClusterMetadata(svc *registry.Service, port *registry.Port, identities []string) []byte {
	a, names := svc.Attributes, subjectAltNames(svc, identities)
	out := make([]byte, 0, 128+len(svc.Hostname)+len(a.Name)+len(a.Namespace))
	out = appendEntry(out, istioFilter, func(out []byte) []byte { // Struct
		out = appendEntry(out, portKey, func(out []byte) []byte { // Value
			return protowire.AppendFixed64(protowire.AppendTag(out, 2, protowire.Fixed64Type), math.Float64bits(float64(port.Number)))
		})
		return appendList(out, servicesKey, func(out []byte) []byte { // ListValue
			return appendMessage(out, 1, func(out []byte) []byte { // Value
				return appendMessage(out, 5, func(out []byte) []byte { // Struct
					out = appendTextEntry(out, "host", string(svc.Hostname))
					out = appendTextEntry(out, "name", strings.ToValidUTF8(a.Name, ""))
					return appendTextEntry(out, "namespace", strings.ToValidUTF8(a.Namespace, ""))
				})
			})
		})
	})
	if len(names) > 0 {
		out = appendEntry(out, pilotkitFilter, func(out []byte) []byte {
			return appendList(out, namesKey, func(out []byte) []byte {
				for _, n := range names {
					out = appendMessage(out, 1, func(out []byte) []byte { return appendText(out, 3, n) })
				}
				return out
			})
		})
	}
	return out
}

// appendList appends an entry of a struct whose value is a list.
func appendList(out []byte, key string, list func([]byte) []byte) []byte {
	return appendEntry(out, key, func(out []byte) []byte { return appendMessage(out, 6, list) })
}

// appendTextEntry appends an entry of a struct whose value is a text.
func appendTextEntry(out []byte, key, text string) []byte {
	return appendEntry(out, key, func(out []byte) []byte { return appendText(out, 3, text) })
}

// appendEntry appends an entry of the map with field number 1.
func appendEntry(out []byte, key string, value func([]byte) []byte) []byte {
	return appendMessage(out, 1, func(out []byte) []byte { return appendMessage(appendText(out, 1, key), 2, value) })
}

// appendMessage appends a field with the message that content appends.
func appendMessage(out []byte, field protowire.Number, content func([]byte) []byte) []byte {
	out = protowire.AppendTag(out, field, protowire.BytesType)
	start := len(out)
	out = content(out)
	var size [5]byte
	return slices.Insert(out, start, protowire.AppendVarint(size[:0], uint64(len(out)-start))...)
}

func subjectAltNames(svc *registry.Service, identities []string) []string {
	names := slices.Concat(svc.ServiceAccounts, identities)
	slices.Sort(names)
	names = slices.Compact(names)
	return slices.DeleteFunc(names, func(s string) bool { return s == "" || !utf8.ValidString(s) })
}
