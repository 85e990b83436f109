// SPDX-License-Identifier: Apache-2.0

// Package registry says what a service is and how a registry of services
// behaves. It holds declarations only; registries are in registry/memory and
// registry/serviceentry, and many become one in aggregate.
//
// The model is that of Istio 1.30's pilot/pkg/model, without what only
// Kubernetes or ambient mesh needs.
//
// # Immutability
//
// Everything that a registry hands out is shared and must not be modified: not
// the services, endpoints and instances, not their maps and slices, and not the
// returned slices themselves.
//
// # Events
//
// Handlers of one registry are called one at a time, in the order of the
// changes, with no lock held, after the registry's own reads show the new state.
// A handler may call back into anything. A handler that is registered when
// services or workloads exist first receives an EventAdd for each. What a panic of a
// handler or an updater costs is said in package configstore.
//
// # Abilities and wrappers
//
// The interfaces that programs implement, [Instance] with its parts [Controller] and
// [ServiceDiscovery], do not grow. What a registry can do beyond them is an
// interface of its own: [ServiceSnapshotter], [Subscriber], [GatewaySubscriber],
// [WorkloadReceiver], configstore.Drainer, configstore.Flusher. Consumers look
// for them with [As] and do without where they are missing.
//
// A type that wraps a registry must not hide or falsify its abilities by accident:
//
//   - A wrapper that shows exactly what the wrapped registry shows, as one that
//     counts or logs calls, has a method Unwrap() registry.Instance. As then finds
//     the abilities that the wrapper does not have itself.
//   - A wrapper that shows something else, as one that filters services, has no
//     Unwrap and implements the abilities itself, as far as it has them. One that
//     embeds a concrete registry and shows other services has to implement
//     ServiceSnapshot, too, if only to return nil.
//
// registrytest compares what a registry's abilities show with its other answers.
//
// # Concurrency
//
// Every method of every registry may be called from any goroutine. Readers see
// the state before a change or after it, never a part of one. What the source of a
// registry tells of a service and of its endpoints at once is one change.
package registry
