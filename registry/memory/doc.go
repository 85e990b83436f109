// SPDX-License-Identifier: Apache-2.0

// Package memory is a registry that the host fills: from a discovery system of its own, a database,
// or a test.
//
//	reg := memory.New(memory.Options{Cluster: "east", Updater: updater})
//	err := reg.Set(service, endpoints)
//
// A service is identified by its host name and namespace. Set sets a service with all its
// endpoints, and Replace sets the complete content of the registry; both compute the difference and
// apply it in one step. SetService keeps the endpoints as they are. SetEndpoints replaces all
// endpoints of a service. AddEndpoint, RemoveEndpoint and ChangeEndpoints change single endpoints,
// at the cost of the change. Workloads give labels to the proxies that run on them, and other
// registries may select them.
//
// Services, endpoints, workloads and gateways that were handed over are shared with readers,
// handlers and the updater, and must not be modified afterwards; to change one, hand over another.
//
// # Events
//
// Only real changes are reported: first to the updater, if the registry has one, in the order
// SvcUpdate, EDSUpdate (or its delta form, if the updater supports it), ConfigUpdate, ProxyUpdate;
// then to the handlers. By then the registry's own reads show the new state. The change becomes
// visible and is reported, except for ProxyUpdate, in one batch (xdsupdate.BatchUpdater). Package
// registry has the guarantees for handlers.
//
// The goroutine that makes a change calls the updater and the handlers before the method returns.
// While another goroutine is delivering, that one delivers this change as well. The same holds for
// a change that a handler or the updater makes. The registry has no goroutine of its own. The life
// cycle is that of package configstore, except that the registry works without Run: Run is one more
// goroutine that delivers, and after Run has ended, deliveries stop. No host needs Drain; Flush
// waits for another goroutine that is delivering.
//
// # Errors
//
// Methods return ErrInvalid (an InvalidError for a field of a service), ErrUnknownService,
// ErrUnknownEndpoint and ErrUnknownWorkload, wrapped with the verb and the object. After an error
// the registry is unchanged.
//
// # Concurrency
//
// Every method is safe for concurrent use, also from handlers. Readers take no lock, and see a
// change as a whole or not at all.
package memory
