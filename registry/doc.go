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
// services or workloads exist first receives an EventAdd for each.
//
// # Concurrency
//
// Every method of every registry may be called from any goroutine. Readers see
// the state before a change or after it, never a part of one.
package registry
