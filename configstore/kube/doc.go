// SPDX-License-Identifier: Apache-2.0

// Package kube shows the custom resources of a Kubernetes API server as configs: a
// Cache is a configstore.ConfigStoreCache for all kinds of a Schemas.
//
//	cache, err := kube.New(restConfig, istio.Schemas(), kube.Options{Domain: "cluster.local"})
//	...
//	registries := serviceentry.New(cache, updater)
//	go cache.Run(stop)
//
// # Which kinds
//
// The CustomResourceDefinitions are watched. A kind whose CRD is there is listed
// and watched, under the schema's version or else the first of its aliases that
// the server serves; objects are shown under the canonical version. A kind whose
// CRD comes later is followed from then on; one whose CRD goes loses its objects,
// as deletes for handlers; one whose CRD comes back starts anew. A kind without a
// CRD has no objects and counts as synced.
//
// What the server forbids affects nothing else: a kind that may not be listed has
// no objects, or keeps those that it had, and is one of Errors. HasSynced waits until
// it may be listed, unless Options.Optional names the kind: a program that starts before
// its rights do, or at an API server that forbids everything while it starts, does not
// take an empty state for the whole. Where CRDs may not be listed, every kind is asked
// for under each of its versions, again and again; it is one that the server does not
// have, and its objects go, when none of them is found and the API server's discovery,
// which everybody may read unless that was changed, does not have the kind either.
//
// # Which objects
//
// Options.Revision, Options.Namespaces and Options.OnlyNamespaces restrict the cache. An object that
// changes so that it is in or out is an add or a delete for handlers.
//
// An object is decoded once per change. Fields that the schema does not know are
// dropped, as by manifest.Options.Lenient. An object whose spec cannot be decoded, or
// that its schema finds invalid, keeps its last good state, and is one of Errors until it
// is good, or gone. What its schema only warns of is one of Warnings, and so is a status
// that cannot be decoded: the spec counts, and Status is nil.
// ResourceVersion, Generation, UID and CreationTimestamp are those of the API
// server; managed fields are not kept.
//
// # Staying up to date
//
// While the server cannot be reached, the state stays and Errors says so: at once if
// an attempt fails, after 5 seconds if there is no answer. That a connection with a
// watch has gone silent client-go finds out by pings, within 45 seconds
// (HTTP2_READ_IDLE_TIMEOUT_SECONDS and HTTP2_PING_TIMEOUT_SECONDS). After a disconnect
// the watch goes on where it was; if the server does not know that
// revision any more, the kind is listed again, and the difference to what is
// published becomes one batch. No event is lost, and none comes twice. An object
// that was deleted and created again meanwhile is a delete and an add. What happened
// to an object while nothing was watched is one change, if it is one.
//
// Objects that are stored under another version than the one that is read go through the
// CRD's conversion. If a webhook does that and fails for one of them, the API server has
// none of the kind to give: those in the cache stay, and a list is an error with the
// webhook's text. A watch that is open only goes silent; the API server does not say why.
//
// Every list is consistent, and a watch begins where a list ended. So of several API
// servers one that lags behind takes nothing back: no object returns to an older state,
// and none that was deleted returns. Only what is restored from a backup is older than
// what was there before.
//
// The events of one kind come in the order of the API server's revisions; those of
// different kinds, or of different ones of Options.OnlyNamespaces, in the order in which
// they arrive.
//
// # Writes
//
// Writes go to the API server, and reads show them when the watch has brought them:
// Await waits for that. Create, Update and Delete keep the promises of package
// configstore: of concurrent writers with the same ResourceVersion exactly one
// succeeds. They differ in what the API server decides: it sets the creation
// time, it takes the status as a write of its own, and an object with finalizers
// stays until they have run.
//
// Errors are those of package configstore. What these do not name, as a write that
// access control forbids or a namespace that does not exist, is the API server's
// error, wrapped: see k8s.io/apimachinery/pkg/api/errors.
//
// # What a write keeps
//
// A config has no field for some of what an object holds: finalizers, managed fields,
// and whatever the CRD has and the schema does not, because it is newer. A write
// replaces what a config has, and keeps the rest:
//
//   - A spec or a status that is equal keeps its text, and an object that is equal
//     is not written.
//   - One that changes keeps the stored fields that the schema does not know, at
//     every depth, as long as what contains them is there: in messages, in the values of
//     maps under the same key, and in those elements of lists that match. A name that an
//     enum does not have stays where the new message has no value.
//   - Elements of lists match first if they are equal in what the schema knows, then
//     if one of their fields name, id, type, key, host, address, number, port,
//     destination, issuer and from, in this order, is set and equal, and then, if the
//     list has as many elements as before, in their order. An element without a match is
//     a new one; one that has lost its match is gone, with what it contained.
//   - An owner, by its UID, keeps fields that a config does not have, and a false that is
//     written out.
//   - What a config could show and does not is removed: labels, annotations, owners,
//     known fields, conditions of the status that UpdateStatus is given, and the whole of
//     a status that UpdateStatus is given as nil. In Update a nil Status leaves all of it.
//   - A StatusWriter replaces its own conditions and the observed generation only.
//
// # Statuses
//
// A StatusWriter writes into the statuses of objects which generation was seen,
// whether it was accepted, and what the program reports of it, at a limited rate, by
// one of many processes: a Lease decides. A ServiceReporter has it write what became of
// ServiceEntries: which services were made, and where else their hosts are defined.
//
// Whether a status must be written is decided from what the cache shows, without a
// request, on each event of the object and whenever a process becomes the leader. So
// statuses that are right cost nothing after a restart, and what others change in ours is
// repaired: at once, then after 1, 2, 4 seconds up to a minute if it is done again and
// again. A status to which nothing can be added, because it is no object or its conditions
// are no list, is left alone until it changes.
//
// A process leads for two thirds of StatusOptions.LeaseDuration after it has sent the
// request that has renewed the Lease; others wait for the whole of it. So the clocks of two
// processes may differ in speed by a third, and need not agree about the time. Each attempt
// of a write asks whether the process still leads, reads the object, and decides anew what
// there is to say; its requests end with the leadership. What remains is a process that is
// stopped between that question and its request, and goes on when another one leads: of
// each of its workers one write may arrive, if nobody has changed the object since it was
// read, and the leader repairs it when it sees it. No other write of two processes overlaps.
//
// # Admission
//
// NewAdmissionHandler returns an http.Handler for a ValidatingWebhookConfiguration, which
// refuses what a Cache of the same schemas would not show, with the fields, and passes on
// what these warn of. It needs no access to the API server. A configuration that goes with it:
//
//	apiVersion: admissionregistration.k8s.io/v1
//	kind: ValidatingWebhookConfiguration
//	metadata: {name: istio-configs}
//	webhooks:
//	- name: istio-configs.example.com
//	  admissionReviewVersions: [v1]
//	  sideEffects: None
//	  failurePolicy: Fail
//	  rules:
//	  - operations: [CREATE, UPDATE]
//	    apiGroups: [networking.istio.io, security.istio.io, telemetry.istio.io, extensions.istio.io]
//	    apiVersions: ["*"]
//	    resources: ["*"]
//	  clientConfig:
//	    service: {namespace: istio-system, name: control-plane, path: /validate}
//	    caBundle: ...
//
// # Access
//
// The cache needs the verbs list and watch for each kind and for
// customresourcedefinitions.apiextensions.k8s.io, which take a ClusterRole. With
// Options.OnlyNamespaces list and watch in these namespaces are enough, by a Role: Errors
// then says that the definitions are forbidden, and they are done without. A kind that
// is forbidden in one of these namespaces keeps HasSynced waiting, too, unless it is in
// Options.Optional. Writers need create, get, update and
// delete for what they write, and update for the subresource status. A StatusWriter
// needs get of the objects, update of their status, and get, create and update of
// leases.coordination.k8s.io in the namespace of its Lease.
//
// # Concurrency
//
// All methods may be called from any goroutine.
package kube
