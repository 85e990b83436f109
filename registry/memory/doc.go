// SPDX-License-Identifier: Apache-2.0

// Package memory is a registry that the program fills: with what it knows
// from a discovery system of its own, a database, or a test.
//
//	reg := memory.New(memory.Options{Cluster: "east", Updater: updater})
//	err := reg.Set(service, endpoints)
//
// A service is identified by its host name and namespace. Set takes it with all its
// endpoints, and Replace takes everything that there is; both find the difference and
// make it in one step. SetService leaves the endpoints as they are. They come and go
// with SetEndpoints, which takes the complete list of a service, or with AddEndpoint,
// RemoveEndpoint and ChangeEndpoints, which cost what they change. Workloads are what proxies run on: they give them labels, and other
// registries may select them.
//
// Services, endpoints, workloads and gateways that were handed over are shared
// with readers, handlers and the updater, and must not be modified any more; to
// change one, hand over another.
//
// # Events
//
// Each change that is one, and no other, is reported: first to the updater, if the
// registry has one, in the order SvcUpdate, EDSUpdate (or its delta form, if the updater
// takes it), ConfigUpdate, ProxyUpdate; then to the handlers. By then the
// registry's own reads show the new state. It becomes visible and is reported, but
// for ProxyUpdate, in one batch (xdsupdate.BatchUpdater). What a registry's
// handlers can rely on is said in package registry.
//
// The goroutine that makes a change calls the updater and the handlers before the
// method returns, unless another goroutine is delivering: then that one delivers
// this change as well. The same holds for a change that a handler or the updater
// makes. The registry has no goroutine of its own. The life cycle is that of
// package configstore, except that the registry works without Run: Run delivers
// beside the others, and when it has ended, nothing is delivered any more. Drain
// is needed by no host; Flush waits for another goroutine that is delivering.
//
// # Errors
//
// Methods return ErrInvalid, with an InvalidError for a field of a service, ErrUnknownService, ErrUnknownEndpoint and
// ErrUnknownWorkload, wrapped with the verb and the object. After an error nothing
// has changed.
//
// # Concurrency
//
// Every method may be called from any goroutine, handlers included. Readers take
// no lock, and see a change as a whole or not at all.
package memory
