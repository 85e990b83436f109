// SPDX-License-Identifier: Apache-2.0

package gatewayapi

import (
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/pilotkit/pilotkit/configstore"
)

// Schemas returns the kinds of the Gateway API as kinds of configs: GatewayClass, Gateway,
// ListenerSet, HTTPRoute, GRPCRoute, TLSRoute, TCPRoute, ReferenceGrant and BackendTLSPolicy, in
// version v1 or an older one. Specs and statuses are a structpb.Struct with the fields as written.
// With these schemas every config store can hold the Gateway API: configstore/kube reads it from an
// API server, configstore/memory and configstore/file from a directory (DirectorySchemas),
// configstore/etcd from etcd. A Cache converts the objects of such a store.
//
// A value of a wrong type is invalid. An unknown field, for example of a newer CRD, is a warning.
// The other validation rules of the CRDs are not checked.
func Schemas() configstore.Schemas { return schemasOf(false, gatewayResources()) }

// DirectorySchemas returns the kinds of Schemas for files that people write, and the Kubernetes
// kinds Namespace and Service, for their labels and ports. An unknown field is invalid, because it
// is a typing error.
func DirectorySchemas() configstore.Schemas {
	return schemasOf(true, append(gatewayResources(), coreResources()...))
}

func schemasOf(strict bool, resources []*resource) configstore.Schemas {
	b := configstore.NewSchemasBuilder()
	for _, r := range resources {
		s := configstore.Schema{
			GroupVersionKind: r.gvk, Aliases: r.older, Plural: r.plural, ClusterScoped: r.clusterScoped,
			Spec: &structpb.Struct{}, Validate: r.validator(strict),
		}
		if r.hasStatus {
			s.Status = &structpb.Struct{}
		}
		b.MustAdd(s)
	}
	return b.Build()
}

func (r *resource) validator(strict bool) configstore.Validator {
	return func(c configstore.Config) (warnings, violations []configstore.Violation) {
		_, found := r.decode(&c)
		if strict {
			return nil, append(found.wrong, found.unknown...)
		}
		return found.unknown, found.wrong
	}
}
