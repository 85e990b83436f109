// SPDX-License-Identifier: Apache-2.0

// Package istio holds the fifteen Istio kinds that Pilot watches: their GroupVersionKinds, their
// schemas and their validation rules.
//
//	store := memory.Make(istio.Schemas())
//	store.Create(configstore.Config{
//		Meta: configstore.Meta{GroupVersionKind: istio.ServiceEntry, Name: "db", Namespace: "default"},
//		Spec: &networking.ServiceEntry{Hosts: []string{"db.example.com"}},
//	})
//
// # Validation
//
// Validators report every finding, each with the path of its field in the object's YAML form.
// Violations reject an object; warnings never do. The rules are those of Istio 1.30's admission
// webhook, of its CustomResourceDefinitions and of the field comments of istio.io/api. Where Istio
// is known to admit a mistake that no later stage can repair, the validator reports it: as a
// violation if the object could not work at all or makes Envoy reject more than the object itself,
// otherwise as a warning. docs/validation.md lists the verdicts, and each decision to differ.
//
// Validators do not check whether other objects exist, the CEL expressions of Telemetries, and the
// content of EnvoyFilter patches except for the type names; Options.EnvoyTypes adds the check
// against Envoy's types. Two differences that protobuf does not keep are lost before a validator
// runs: between an omitted number and 0 and, over the wire, between an omitted and an empty map.
//
// # Concurrency
//
// Everything here is a pure function or a constant value; all of it may be used
// from any goroutine.
package istio
