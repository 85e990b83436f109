// SPDX-License-Identifier: Apache-2.0

// Package bridge makes a registry from a foreign catalogue of services and their instances, such as
// Consul, Nacos, Eureka, or a database.
//
//	registries.AddRegistry(func(updater xdsupdate.XDSUpdater) registry.Instance {
//		return bridge.New(catalogue, bridge.Options{Provider: "Consul", Updater: updater})
//	})
//
// The host implements a [Catalogue], which lists the complete content, and optionally a [Watcher],
// which reports when to list again. The package example is a complete catalogue for Consul.
//
// # Safety
//
// An accepted list becomes visible in one step: neither a reader nor a push has a service without
// its endpoints, or a part of the list. Unchanged services cost a comparison and are not reported.
// After any failure, the last good state stays:
//
//   - An error or a panic of the catalogue changes nothing. The bridge retries with exponential
//     backoff, from 200 ms up to Options.MaxBackoff, plus a jitter of up to half of the delay.
//   - A service whose record has a defect keeps its own last good state, and other services are
//     not affected. The Status names the service and the field.
//   - A list that drops more than Options.MaxDrop of the services, or of the endpoints, is held
//     back as a whole until Options.Confirmations further lists have confirmed it. A further list
//     confirms it if it is not such a drop from the list that is held back.
//   - An empty list after an error is never accepted, however often it is repeated, if there was
//     any content before, because a catalogue that lost its content responds in this way. Any
//     other list ends this state, and so does Accept, which accepts the next list in any case.
//
// Status reports whether the content of the registry is stale, since when, and why.
//
// # Life cycle
//
// Run lists and watches until it is stopped. HasSynced is true after the first accepted list, and
// stays true. If there was an error before, an empty first list has to be confirmed, too. A host
// that wants no goroutine calls Sync.
//
// # Concurrency
//
// Every method is safe for concurrent use, but handlers and the updater must not call Sync. The
// functions of the catalogue are called one at a time, with no lock held.
package bridge
