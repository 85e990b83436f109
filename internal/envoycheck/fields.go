// SPDX-License-Identifier: Apache-2.0

package envoycheck

import (
	"slices"
	"sync"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// fieldsToCheck returns the fields through which a message of a type can contain one that unpack
// checks, by the name of the type. Most fields of resources cannot, and reflection is slow. Types
// that only occur packed in an Any are missing.
//
//nolint:gochecknoglobals // never changed
var fieldsToCheck = sync.OnceValue(func() map[protoreflect.FullName][]protoreflect.FieldDescriptor {
	types := make(map[protoreflect.FullName]protoreflect.MessageDescriptor)
	for _, m := range []proto.Message{&clusterv3.Cluster{}, &endpointv3.ClusterLoadAssignment{}, &listenerv3.Listener{}, &routev3.RouteConfiguration{}} {
		addTypes(m.ProtoReflect().Descriptor(), types)
	}
	out := make(map[protoreflect.FullName][]protoreflect.FieldDescriptor, len(types))
	for name := range types {
		out[name] = nil
	}
	for changed := true; changed; {
		changed = false
		for name, of := range types {
			for i := range of.Fields().Len() {
				f := of.Fields().Get(i)
				if to := f.Message(); to != nil && !slices.Contains(out[name], f) && (isChecked(to.FullName()) || len(out[to.FullName()]) > 0) {
					out[name], changed = append(out[name], f), true
				}
			}
		}
	}
	return out
})

// addTypes adds a type and all types that its messages can contain.
func addTypes(of protoreflect.MessageDescriptor, types map[protoreflect.FullName]protoreflect.MessageDescriptor) {
	if _, known := types[of.FullName()]; known || isChecked(of.FullName()) {
		return
	}
	types[of.FullName()] = of
	for i := range of.Fields().Len() {
		if to := of.Fields().Get(i).Message(); to != nil {
			addTypes(to, types)
		}
	}
}

// isChecked reports whether unpack checks messages of a type themselves.
func isChecked(name protoreflect.FullName) bool {
	switch name {
	case "google.protobuf.Any", "google.protobuf.Duration", "envoy.type.matcher.v3.RegexMatcher":
		return true
	default:
		return false
	}
}
