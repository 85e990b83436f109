// SPDX-License-Identifier: Apache-2.0

// Package bridge makes a registry of a foreign catalogue: of Consul, Nacos, Eureka, a
// database, or what else knows services and their instances.
//
//	registries.AddRegistry(func(updater xdsupdate.XDSUpdater) registry.Instance {
//		return bridge.New(catalogue, bridge.Options{Provider: "Consul", Updater: updater})
//	})
//
// What is left to write is a [Catalogue], which lists everything that there is, and
// optionally a [Watcher], which tells when to list again. The package example is the
// whole of it for Consul.
//
// # What is kept
//
// A list that is taken becomes visible in one step: neither a reader nor a push has a
// service without its endpoints, or a part of the list. What did not change costs a
// comparison and is not reported. Whatever goes wrong, the last good state stays:
//
//   - An error or a panic of the catalogue changes nothing. The bridge tries again,
//     at first after 200 ms, then twice as long each time up to Options.MaxBackoff, and
//     each time up to half of that longer, by chance.
//   - A record with a defect keeps its own last good state, and hurts no others. The
//     Status names the service and the field.
//   - A list that drops more than Options.MaxDrop of the services, or as much of the
//     endpoints, is held back as a whole until Options.Confirmations further lists have
//     confirmed it, by not being such a drop from the one that is held back.
//   - An empty list after an error is never taken, however often it comes, if there was
//     anything before: a catalogue that has lost its content answers in this way. Any
//     other list ends that; or Accept, by which the program takes the next list as it is.
//
// Status says whether what the registry shows is stale, since when, and why.
//
// # Life cycle
//
// Run lists and watches until its end. HasSynced is true after the first list that was
// taken, and stays so. If there was an error before, an empty first list has to be
// confirmed, too. A program that wants no goroutine calls Sync.
//
// # Concurrency
//
// Every method may be called from any goroutine; Sync not from handlers or the updater.
// The functions of the catalogue are called one at a time, with no lock held.
package bridge
