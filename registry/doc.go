// SPDX-License-Identifier: Apache-2.0

// Package registry defines services and the contract of service registries. It holds declarations
// only; registries are in registry/memory and registry/serviceentry, and aggregate merges many into
// one.
//
// The model is that of Istio 1.30's pilot/pkg/model, without the parts that only Kubernetes or
// ambient mesh need.
//
// # Immutability
//
// All results of a registry are shared and must not be modified: services, endpoints and instances,
// their maps and slices, and the returned slices themselves.
//
// # Events
//
// Handlers of one registry are called one at a time, in the order of the changes, with no lock
// held, after the registry's own reads show the new state. A handler may call any method of any
// registry. A handler that is registered when services or workloads exist first receives an
// EventAdd for each. Package configstore describes the effects of a panic in a handler or an
// updater.
//
// # Abilities and wrappers
//
// The interfaces that hosts implement, [Instance] with its parts [Controller] and
// [ServiceDiscovery], do not grow. Each further ability of a registry is an interface of its own:
// [ServiceSnapshotter], [Subscriber], [GatewaySubscriber], [WorkloadReceiver], configstore.Drainer,
// configstore.Flusher. Consumers look for them with [As] and have a fallback for a registry that
// lacks them.
//
// A wrapper of a registry must not hide or falsify its abilities by accident:
//
//   - A wrapper with the same content as the wrapped registry, such as one that counts or logs calls,
//     has a method Unwrap() registry.Instance. Then As finds the abilities that the wrapper does not
//     have itself.
//   - A wrapper with other content, such as one that filters services, has no Unwrap and implements
//     the abilities itself, as far as it has them. A wrapper that embeds a concrete registry and shows
//     other services has to implement ServiceSnapshot, too, if only to return nil.
//
// registrytest compares the results of a registry's abilities with its other results.
//
// # Concurrency
//
// Every method of every registry is safe for concurrent use. Readers see the state before a change
// or after it, never a part of one. If the source of a registry reports a service and its endpoints
// at once, that is one change.
package registry
