// SPDX-License-Identifier: Apache-2.0

// Package serviceentry is the registry of services declared by ServiceEntries. Their endpoints come
// from the entries, from WorkloadEntries, and from workloads of other registries that entries
// select by label. The results are those of Istio 1.30; the comment of Controller lists the
// exceptions.
//
// # Events
//
// Changes of configs, workloads of other registries, the mesh and namespaces go into one queue and
// are handled in batches: all queued events produce one new state. The state is committed as one
// xdsupdate.Update together with the calls SvcUpdate, EDSUpdate, ConfigUpdate and ProxyUpdate, in this
// order. Then the handlers of services and workloads are notified. Unchanged objects are not
// reported.
//
// # Concurrency
//
// Every method may be called from any goroutine, and all except Flush also from handlers and the
// updater. Readers take no lock. The registry has no goroutine of its own: the goroutine that adds
// the first event of a batch handles the batch. An updater of the host and the handlers are called
// one at a time, and no lock is held.
package serviceentry

// The files, in the order of a batch:
//
//	controller.go      the registry; it subscribes to the config cache
//	intake.go          the queue of events; a batch is reduced to the last state of each object
//	batch.go           the collected changes of a batch
//	apply_entry.go     the new state of a ServiceEntry: its hosts and services,
//	inline.go          and its inline endpoints
//	apply_workload.go  the new state of a WorkloadEntry or a foreign workload
//	difference.go      the next list of endpoints of each host, and its changes
//	publish.go         the next views of hosts, entries and addresses
//	announce.go        publishes the next state and its changes with package
//	proxies.go         registry/internal/publish, which calls the updater, also for
//	subscribe.go       proxies, and the handlers
//
// The data:
//
//	entry.go           an entry has a binding to each of its hosts, and
//	contribution.go    contributions: the endpoints from the entry or from a workload
//	host.go            a host name in a namespace, with all its bindings
//	workload.go        workloads that entries may select
//	selection.go       the entries and workloads of a namespace, by label
//	interner.go        one copy of equal attributes
//	state.go           the view of readers; located.go and addresses.go: contributions by address
//
// Conversions, as functions without state: conversion.go, definition.go (ServiceEntries),
// template.go and draft.go (endpoints), address.go, allocation.go, health.go, labels.go,
// locality.go, mesh.go.
//
// The queries are in services.go and queries.go. view.go recomputes the whole state for package
// explain.
//
// Only the goroutine that handles a batch writes. Data of readers is immutable, or a cell that
// publish.go changes. All other data belongs to that goroutine and needs no lock.
//
// Two structures are neither builtin nor persistent maps: the cells of state.go and the table of
// addresses.go. Their comments have the measurements.
