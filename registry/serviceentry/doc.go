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
// is waiting becomes one new state, which readers see at once and as a whole. It
// becomes visible in one batch of the updater (xdsupdate.BatchUpdater) with the
// calls that report it, in the order SvcUpdate, EDSUpdate, ConfigUpdate.
// ProxyUpdate follows, and after it the handlers of services and workloads are
// notified. What did not change is not reported.
//
// # Concurrency
//
// Every method may be called from any goroutine and, but for Flush, from within
// handlers and the updater. Readers take no lock. There is no goroutine of the
// registry's own: a batch is handled by the goroutine that brought its first event.
// The updater and the handlers are called one at a time and with no lock held.
package serviceentry

// How the files hang together, in the order of a batch:
//
//	controller.go      the registry; it subscribes to the config cache
//	intake.go          events go into a queue; what waits is one batch, of which
//	                   only the last state of each object counts
//	batch.go           what a batch changes, collected while it is put together
//	apply_entry.go     the new state of a ServiceEntry: its hosts and services,
//	inline.go          and the endpoints that are written in it
//	apply_workload.go  the new state of a WorkloadEntry or a foreign workload
//	difference.go      what was added and removed becomes the next list of
//	                   endpoints of each host, and the changes that lead to it
//	publish.go         what readers are going to see of hosts, entries and addresses
//	announce.go        what changed is said, and the next state is published, by
//	proxies.go         package registry/internal/publish, which calls the updater, for
//	subscribe.go       proxies too, and the handlers
//
// What there is:
//
//	entry.go           an entry has a binding to each host that it defines, and
//	contribution.go    contributions: the endpoints that the entry or a workload gives it
//	host.go            a host name in a namespace, with all its bindings
//	workload.go        what entries may select
//	selection.go       the entries and workloads of a namespace, by label
//	interner.go        one copy of equal attributes
//	state.go           what readers see at one moment; located.go and addresses.go:
//	                   contributions by address
//
// What an object means, as functions without state: conversion.go,
// definition.go (ServiceEntries), template.go and draft.go (endpoints),
// address.go, allocation.go, health.go, labels.go, locality.go, mesh.go.
//
// What readers ask is in services.go and queries.go. view.go is what package explain
// reads: the whole state, made anew.
//
// Only the goroutine that handles a batch writes. What readers see is immutable, or
// a cell that publish.go changes; the rest is its own and needs no lock.
//
// Two structures here are neither a builtin map nor a persistent one: the cells of
// state.go and the table of addresses.go, which have their figures there.
