// SPDX-License-Identifier: Apache-2.0

// Package serviceentry is the registry of services that are declared by
// ServiceEntries. Their endpoints come from the entries themselves, from
// WorkloadEntries, and from the workloads of other registries, which entries
// select by their labels. The results are those of Istio 1.30; the documentation
// of the controller says where it is better.
//
// # Events
//
// Everything that happens, be it a change of a config, of a foreign workload, of
// the mesh or of a namespace, is put into one order and handled in batches: what
// is waiting becomes one new state, which readers see at once and as a whole.
// Then the updater is told what changed, in the order SvcUpdate, EDSUpdate,
// ConfigUpdate, ProxyUpdate, and after it the handlers of services and workloads.
// What did not change is not mentioned.
//
// # Concurrency
//
// Every method may be called from any goroutine, and from within handlers and
// the updater. There is no goroutine of the registry's own: a batch is handled
// by the goroutine that brought its first event. The updater and the handlers are
// called one at a time and with no lock held.
package serviceentry
