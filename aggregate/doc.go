// SPDX-License-Identifier: Apache-2.0

// Package aggregate presents several config caches as one, and several registries as one.
//
// # Caches
//
// [MakeCache] and [MakeWriteableCache] merge caches in order of precedence. For each key, the
// aggregate has the object of the first cache with that key and hides the objects of later caches.
// Get, List and events read one merged view, which the aggregate updates as the caches change, so
// they agree:
//
//	change of a cache                            | event of the aggregate
//	---------------------------------------------|-----------------------------
//	key that an earlier cache also has           | none
//	Add of a key that a later cache also has     | Update from the later object
//	Delete of a key that a later cache also has  | Update to the later object
//	any other                                    | the same
//
// All guarantees of [configstore.ConfigStoreCache] hold, and the events of all caches are in one
// order. Two rules are specific to an aggregate:
//
//   - A resource version comes from the cache of the object. Versions of two caches may be equal by
//     coincidence, so events, not versions, tell an object and its replacement apart. For the same
//     reason, the changes of a batch carry no revision.
//   - The changes of one cache keep their order. Changes of two caches have the order of their
//     arrival at the aggregate.
//
// The freshness of reads depends on the caches:
//
//   - The aggregate reads through a [configstore.Watcher]: a read applies the changes between the
//     revision of the view and the revision of the cache. After a write has returned, Get of the
//     aggregate sees it, even if Run has not been called. If the history of the cache is too short
//     for these changes, the read lists the whole cache again. Handlers then get the difference, in
//     the order of the keys, instead of each change. Without such a read they get each change.
//   - For any other cache, the aggregate knows the objects that existed when it was created and the
//     events since. Reads are exactly as fresh as the events. A wrapper counts as the cache that it
//     wraps if it follows the rule of package configstore. An aggregate is not a Watcher.
//
// A [Stage] is a Cache of one source and of the configs that a converter derives from each of its
// batches. A batch and the derived configs are one batch of the Stage, and one update for pushes.
//
// # Registries
//
// [Controller] merges registries, which can be added and deleted at any time. Kubernetes registries
// precede all others. Within both groups the order is the order of addition. The first Kubernetes
// registry is the primary one.
//
//   - Services returns the services of all registries. Services of Kubernetes registries are merged
//     by host name: the result is the service of the first registry, with the ClusterVIPs and
//     external addresses that other registries have in their clusters, and their service accounts.
//     The services of other registries stay unchanged.
//   - GetService returns an element of Services: the Kubernetes service of a host name if there is
//     one, else the service of the first registry with that host name. (Istio 1.30 prefers the other
//     registries here, and Kubernetes elsewhere.)
//   - Queries about a proxy go to the Kubernetes registries of its cluster, or to all Kubernetes
//     registries if the cluster is unknown, and to every other registry.
//   - Handlers receive the events of the registries. When a registry is added or deleted, they
//     receive an Add or a Delete of its services and workloads. When it is replaced, they receive
//     the difference.
//
// Reads are always as fresh as the registries, even for a registry that sends no events, because an
// updater is called before handlers are and must not read the state before. Each read therefore
// compares the present services of the registries with the input of the merged view. For a
// [registry.ServiceSnapshotter] the comparison is one of pointers, and a change costs the merge of
// the changed host names. The sorted list is built when Services is called. For any other registry
// the aggregate compares the slice that Services returns: the registry must return the same slice
// until its services change, and then another one, sorted by registry.CompareServices. A registry
// that returns a new slice for each call is correct but costs a comparison of all its services in
// each read. The Controller is a ServiceSnapshotter, so aggregates can be nested.
//
// A push does not use the present registries and services but those in its [xdsupdate.Root]
// (Controller.ServicesAt). It reads the present services of a registry only if the registry has set
// none in the root.
//
// # Updaters of registries
//
// The registries write to an xdsupdate.XDSUpdater, which usually reads from the Controller, so the
// two depend on each other. Create the Controller first. The updater attaches itself when it is
// created (AttachUpdater), or is passed in Options. Add the registries last:
//
//	registries := aggregate.NewController()
//	server := ads.New(registries)
//	registries.AddRegistry(func(updater xdsupdate.XDSUpdater) registry.Instance {
//		return serviceentry.New(configs, updater)
//	})
//
// AddRegistry passes an [xdsupdate.ShardWriter] to the function that creates the registry. The writer holds
// updates back until the function has returned. Then the registry joins with one update: its writes until
// then, the list of registries, and a push request for its services. Replacing and deleting a registry are one
// update, too. Each push therefore has the services and the endpoints of a registry, or neither.
//
// The writer is closed when the registry is deleted or replaced. It loses a shard when a younger registry joins
// that has written to the shard, or writes to it later. Later writes have no effect. A deleted registry leaves no
// state behind:
//
//   - Its shards are removed from the updaters, and a push of its services is requested.
//   - Handlers receive a Delete of its services and workloads.
//   - Its workloads are retracted from the registries of the Controller that implement
//     [registry.WorkloadReceiver]. The host may have registered their handler with the Controller or
//     with the deleted registry itself. Events that the deleted registry sends later are retracted
//     too.
//
// If a deleted registry is added again, its workloads count when it announces them the next time,
// or when it replays them to a new handler.
//
// # Concurrency
//
// Every method may be called from any goroutine. Reads take no lock unless the content has changed.
// Handlers are called one at a time, and no lock is held. Run or Drain of a Cache calls its
// handlers. The goroutine that causes an event, or Run, calls the handlers of a Controller.
package aggregate
