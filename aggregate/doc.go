// SPDX-License-Identifier: Apache-2.0

// Package aggregate makes many config caches one, and many registries one.
//
// # Caches
//
// [MakeCache] and [MakeWriteableCache] unite caches in an order. Each key has the
// object of the first cache that has one; the others are as if they did not
// exist. There is one merged view, maintained as the caches change, behind Get,
// List and events, so the three agree:
//
//	change of a cache                            | event of the aggregate
//	---------------------------------------------|-----------------------------
//	of an object that an earlier cache also has  | none
//	Add of what a later cache also has           | Update from the later one's
//	Delete of what a later cache also has        | Update to the later one's
//	any other                                    | the same
//
// All promises of [configstore.ConfigStoreCache] hold, with one order of events
// over all caches. Two things follow from there being several:
//
//   - A resource version is that of the cache that the object comes from. Those of
//     two caches may be equal by chance; an object and the one that takes its
//     place are distinguished by their events.
//     For the same reason the changes of a batch carry no revision.
//   - The changes of one cache keep their order. Changes of two caches are in the
//     order in which the aggregate receives them.
//
// How fresh reads are depends on the caches:
//
//   - A [configstore.Watcher] is read through: a read compares the cache's revision
//     with that of the view and takes in what has changed since. When a write has
//     returned, the aggregate's Get sees it, whether anything runs or not. If more
//     has changed than the cache's history holds, a read takes in all of the cache
//     anew; handlers then get the difference, in the order of the keys, instead of
//     each change. Without such a read they get each change.
//   - Of any other cache the aggregate knows what it had when the aggregate was
//     made, and its events since. Reads are at least as fresh as the events, and no
//     fresher. A wrapper is what it wraps if it follows the rule of package
//     configstore; an aggregate is no Watcher.
//
// # Registries
//
// [Controller] unites registries, which may come and go at any time. Kubernetes
// registries come first, then the others, each in the order in which they were
// added; the first Kubernetes registry is the primary one.
//
//   - Services has the services of all. Those of Kubernetes registries merge by
//     host name: the first registry's service with the ClusterVIPs and external
//     addresses that the others have in their clusters, and their service
//     accounts. The services of other registries stay as they are.
//   - GetService answers with one of Services: the Kubernetes service of a host
//     name if there is one, else the answer of the first registry that has it.
//     (Istio 1.30 prefers the other registries here, and Kubernetes elsewhere.)
//   - Proxies are looked up in the Kubernetes registries of their own cluster, or
//     all if that is not known, and in every other registry.
//   - Handlers receive the events of the registries. When a registry is added or
//     deleted they receive an Add or a Delete of its services and workloads; when
//     it is replaced, the difference.
//
// Reads are always as fresh as the registries, also for a registry that sends no
// events: an updater is called before handlers are, and must not read what was
// before. So a read compares what the registries have now with what the merged
// view was made from. For a [registry.ServiceSnapshotter] that is a pointer, and a
// change costs the merge of the host names that it concerns; the sorted list is
// made when Services asks for it. Of any other registry the slice that Services
// returns is compared: it has to be the same one as long as nothing has changed,
// and another one, sorted by registry.CompareServices, afterwards. One that makes
// a new slice for each call is right but costs a comparison of its services with
// each read. The Controller is a ServiceSnapshotter itself, so that aggregates
// nest.
//
// # Updaters of registries
//
// What registries write to, an xdsupdate.XDSUpdater, usually reads from the
// Controller, so that each needs the other one. The Controller is made first; the
// updater attaches itself when it is made (AttachUpdater), or is given in
// Options; then come the registries:
//
//	registries := aggregate.NewController()
//	server := ads.New(registries)
//	registries.AddRegistry(func(updater xdsupdate.XDSUpdater) registry.Instance {
//		return serviceentry.New(configs, updater)
//	})
//
// The updater that AddRegistry hands out is an [xdsupdate.ShardWriter]. It is closed when the
// registry is deleted or replaced, and loses a shard to another registry that is made
// for it: what the registry writes later is dropped. A deleted registry leaves nothing
// behind:
//
//   - its shards are removed from the updaters, and its services are pushed;
//   - its services and workloads are deleted in what handlers receive;
//   - its workloads are retracted from those registries of the Controller that are
//     a [registry.WorkloadReceiver], whether their handler was registered with the
//     Controller or with the registry itself, and for as long as it sends events.
//
// Workloads of a registry that is deleted and added again count when it announces
// them the next time, or to a handler that is registered then.
//
// # Concurrency
//
// Every method may be called from any goroutine. Reads take no lock as long as
// nothing has changed. Handlers are called one at a time, with no lock held: those
// of a Cache by its Run or Drain, those of a Controller by the goroutine that causes the
// event, or by its Run.
package aggregate
