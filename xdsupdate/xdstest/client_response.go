// SPDX-License-Identifier: Apache-2.0

package xdstest

import (
	"maps"
	"slices"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/anypb"
)

// Response is one discovery response.
type Response struct {
	TypeURL string
	// Version is version_info (SotW) or system_version_info (delta).
	Version string
	Nonce   string
	// Resources are the resources in the response, in its order.
	Resources []Resource
	// Removed are the names in removed_resources (delta).
	Removed []string
	// Bytes is the size of the encoded response.
	Bytes int
}

// Names returns the names of the resources in the response, in its order.
func (r Response) Names() []string {
	out := make([]string, len(r.Resources))
	for i, res := range r.Resources {
		out[i] = res.Name
	}
	return out
}

// Resource is one resource as it was sent.
type Resource struct {
	Name string
	// Version is the version of the resource (delta) or of the response (SotW).
	Version string
	// Any is the encoded resource, nil if the response had only its name.
	Any *anypb.Any
}

// Message decodes the resource. Its Go package has to be linked into the program.
func (r Resource) Message() (proto.Message, error) { return r.Any.UnmarshalNew() }

// nameOf returns the name in a SotW resource: its field "name", or "cluster_name" in a load
// assignment; "" if it cannot be decoded or has none.
func nameOf(a *anypb.Any) string {
	m, err := a.UnmarshalNew()
	if err != nil {
		return ""
	}
	for _, field := range []protoreflect.Name{"name", "cluster_name"} {
		if d := m.ProtoReflect().Descriptor().Fields().ByName(field); d != nil && d.Kind() == protoreflect.StringKind {
			return m.ProtoReflect().Get(d).String()
		}
	}
	return ""
}

// State is the state of a client: the resources that it received and accepted, by type and name.
// The maps are copies; the resources are shared and read-only.
type State struct {
	types map[string]map[string]Resource
}

// Resources returns the resources of a type, by name.
func (s State) Resources(typeURL string) map[string]Resource { return s.types[typeURL] }

// Names returns the names of the resources of a type, sorted.
func (s State) Names(typeURL string) []string { return slices.Sorted(maps.Keys(s.types[typeURL])) }

// Has reports whether the client has all named resources of a type.
func (s State) Has(typeURL string, names ...string) bool {
	for _, name := range names {
		if _, ok := s.types[typeURL][name]; !ok {
			return false
		}
	}
	return true
}
