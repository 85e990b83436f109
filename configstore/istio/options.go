// SPDX-License-Identifier: Apache-2.0

package istio

import "google.golang.org/protobuf/reflect/protoregistry"

// Options adjust what Schemas returns. The zero value is the default.
type Options struct {
	// EnvoyTypes finds the types of Envoy, with which the patches of EnvoyFilters
	// are then checked: a value that is none of the message it patches is refused,
	// an unknown field is a warning, and so is a type that is not found. A program
	// that links Envoy's types can give protoregistry.GlobalTypes. It is called by
	// validators, from any goroutine. Default: nil; types are not looked at.
	EnvoyTypes TypeResolver
}

// TypeResolver finds the types of messages and of their extensions.
// *protoregistry.Types is one.
type TypeResolver interface {
	protoregistry.MessageTypeResolver
	protoregistry.ExtensionTypeResolver
}
