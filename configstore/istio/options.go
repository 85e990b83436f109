// SPDX-License-Identifier: Apache-2.0

package istio

import "google.golang.org/protobuf/reflect/protoregistry"

// Options adjust what Schemas returns. The zero value is the default.
type Options struct {
	// EnvoyTypes finds the types of Envoy, for checks of the patches of EnvoyFilters: a value that
	// does not fit the patched message is rejected; an unknown field, and a type that is not found,
	// is a warning. A host that links Envoy's types can pass protoregistry.GlobalTypes. It is
	// called by validators, from any goroutine. With nil, the default, types are not checked.
	EnvoyTypes TypeResolver
}

// TypeResolver finds the types of messages and of their extensions.
// *protoregistry.Types is one.
type TypeResolver interface {
	protoregistry.MessageTypeResolver
	protoregistry.ExtensionTypeResolver
}
