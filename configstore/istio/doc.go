// SPDX-License-Identifier: Apache-2.0

// Package istio holds the fifteen Istio kinds that Pilot watches: their
// GroupVersionKinds, their schemas and the rules that their objects keep.
//
//	store := memory.Make(istio.Schemas())
//	store.Create(configstore.Config{
//		Meta: configstore.Meta{GroupVersionKind: istio.ServiceEntry, Name: "db", Namespace: "default"},
//		Spec: &networking.ServiceEntry{Hosts: []string{"db.example.com"}},
//	})
//
// # Validation
//
// Validators report every finding, each with the path of its field in the
// object's YAML form. Violations refuse an object; warnings never do. The rules
// are those of Istio 1.30's admission webhook, of its CustomResourceDefinitions
// and of the field comments of istio.io/api. Where Istio is known to let a mistake
// through that nothing later can repair, the validator reports it: as a violation
// if the object could not work at all or makes Envoy refuse more than itself, else
// as a warning. docs/validation.md lists the verdicts, and each decision to differ.
//
// Not checked is whether other objects exist, what the names in CEL expressions of
// Telemetries mean, and what the patches of EnvoyFilters hold, beyond the places that name a type: Options.EnvoyTypes adds the check
// against Envoy's types. Two differences that protobuf does not keep are lost
// before a validator runs: whether a number was left out or 0, and, over the wire,
// whether a map was left out or empty.
//
// # Concurrency
//
// Everything here is a pure function or a constant value; all of it may be used
// from any goroutine.
package istio
