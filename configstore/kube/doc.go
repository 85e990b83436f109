// SPDX-License-Identifier: Apache-2.0

// Package kube provides the custom resources of a Kubernetes API server as configs: a Cache is a
// configstore.ConfigStoreCache for all kinds of a Schemas.
//
//	cache, err := kube.New(restConfig, istio.Schemas(), kube.Options{Domain: "cluster.local"})
//	...
//	registries := serviceentry.New(cache, updater)
//	go cache.Run(stop)
//
// # Which kinds
//
// The cache watches the CustomResourceDefinitions. It lists and watches each kind that has a CRD,
// under the schema's version or else under the first of the schema's aliases that the server
// serves, and publishes its objects under the canonical version. A kind whose CRD is created later
// is watched from then on. When a CRD is deleted, handlers see its objects deleted; when it is
// created again, the kind is listed again. A kind without a CRD has no objects and counts as
// synced.
//
// An error of one kind does not affect the other kinds. A kind that the server forbids to list has
// no objects, or keeps its last objects, and Errors reports it. HasSynced waits until the kind may
// be listed, unless Options.Optional contains the kind, because a control plane that starts before
// its access rights are granted must not take an empty state for the complete one. If CRDs may not
// be listed, the cache requests every kind under each of its versions, with backoff. It regards a
// kind as absent, and deletes its objects, if the server answers 404 for every version and the API
// server's discovery, which is open to all clients by default, does not list the kind either.
//
// # Which objects
//
// Options.Revision, Options.Namespaces and Options.OnlyNamespaces restrict the cache. An object
// that changes so that it is in or out is an add or a delete for handlers.
//
// An object is decoded once per change. Fields that the schema does not know are dropped, as with
// manifest.Options.Lenient. An object whose spec cannot be decoded or is invalid by its schema
// keeps its last good state, and Errors reports it until it is valid or deleted. Warnings reports
// the warnings of the schema, and statuses that cannot be decoded: such an object is published with
// a nil Status. ResourceVersion, Generation, UID and CreationTimestamp are the API server's;
// managed fields are dropped.
//
// # Staying up to date
//
// While the server cannot be reached, the cache keeps its state and Errors reports the failure:
// immediately if an attempt fails, after 5 seconds if the server does not respond. client-go
// detects a silent watch connection by HTTP/2 pings, within 45 seconds
// (HTTP2_READ_IDLE_TIMEOUT_SECONDS and HTTP2_PING_TIMEOUT_SECONDS). After a disconnect the watch
// resumes at its last resource version. If the server has compacted that version, the kind is
// listed again, and the difference from the published state becomes one batch. No event is lost or
// duplicated. An object that was deleted and created again meanwhile is a delete and an add. All
// changes of an object during a gap in the watch become at most one change.
//
// Objects that are stored under another version than the requested one pass through the CRD's
// conversion. If a conversion webhook fails for one of them, the API server returns no object of
// the kind: the cache keeps its objects, and a list fails with the webhook's text. A watch that is
// already open merely stops delivering; the API server does not report the reason.
//
// Every list is consistent, and a watch starts at the revision of a list. A lagging replica of the
// API server therefore cannot revert the cache: no object returns to an older state, and no deleted
// object reappears. Only a restore from a backup can bring back an older state.
//
// The events of one kind arrive in the order of the API server's revisions. Events of different
// kinds, or of different namespaces of Options.OnlyNamespaces, arrive in the order in which they
// are received.
//
// # Writes
//
// Writes go to the API server, and reads return them once the watch has delivered them: Await waits
// for that. Create, Update and Delete keep the guarantees of package configstore: of concurrent
// writers with the same ResourceVersion exactly one succeeds. Some of their effects are the API
// server's decision: it sets the creation time, it accepts the status only in a separate request,
// and it keeps an object with finalizers until they have run.
//
// The errors are those of package configstore. Any other failure, such as a forbidden write or a
// missing namespace, is the API server's error, wrapped: see k8s.io/apimachinery/pkg/api/errors.
//
// # Preserved fields
//
// A config has no field for some parts of an object: finalizers, managed fields, and CRD fields
// that are newer than the schema. A write replaces the parts that a config has and preserves the
// rest:
//
//   - An equal spec or status keeps its stored text, and an equal object is not written.
//   - A changed spec or status keeps the stored fields that the schema does not know, at every
//     depth, as long as the value that contains them remains: in messages, in the values of maps
//     under the same key, and in the elements of lists that match. An enum value that the schema
//     does not know stays if the new message leaves the field unset.
//   - Elements of lists match first if their known fields are equal, then if one of their fields
//     name, id, type, key, host, address, number, port, destination, issuer and from, in this
//     order, is set and equal, and then, if the list has as many elements as before, by position.
//     An unmatched new element is stored as given; an unmatched old element is removed with its
//     unknown fields.
//   - An owner, identified by its UID, keeps the fields that a config does not have, and an
//     explicit false.
//   - Fields that a config has but does not set are removed: labels, annotations, owners, known
//     fields, the conditions of the status that is passed to UpdateStatus, and the whole status if
//     UpdateStatus is passed a nil status. In Update a nil Status preserves the stored status.
//   - A StatusWriter replaces only its own conditions and the observed generation.
//
// # Statuses
//
// A StatusWriter writes into the statuses of objects the observed generation, whether the object
// was accepted, and the conditions that the host reports. It limits its rate, and a Lease elects
// the one process that writes. A ServiceReporter reports the outcome of ServiceEntries to it: the
// services that were created, and the other sources that define their hosts.
//
// The writer compares the cached status with the wanted one on each event of the object and
// whenever the process becomes the leader; the comparison takes no request. Correct statuses
// therefore cost nothing after a restart, and foreign changes of the writer's conditions are
// repaired: immediately at first, and with a delay that doubles from 1 second to a minute while
// they recur. A status that cannot be extended, because it is not an object or its conditions are
// not a list, is left alone until it changes.
//
// A process leads for two thirds of StatusOptions.LeaseDuration after it sent the request that
// renewed the Lease; the other processes wait for the whole duration. The clocks of two processes
// may therefore differ in speed by a third, and need not agree about the time. Each attempt of a
// write checks that the process still leads, reads the object, and computes the status again; its
// requests are cancelled when the leadership ends. One overlap remains possible: if a process is
// suspended between that check and its request and resumes while another process leads, one write
// per worker can arrive, provided that the object has not changed since it was read. The leader
// repairs the status when it sees it.
//
// # Admission
//
// NewAdmissionHandler returns an http.Handler for a ValidatingWebhookConfiguration. It rejects the
// objects that a Cache of the same schemas would not publish, with the invalid fields, and returns
// the schemas' warnings. It needs no access to the API server. A matching configuration:
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
// customresourcedefinitions.apiextensions.k8s.io, which takes a ClusterRole. With
// Options.OnlyNamespaces, a Role with list and watch in each of these namespaces is enough: Errors
// then reports that the definitions are forbidden, and the cache works without them. A kind that is
// forbidden in one of these namespaces delays HasSynced, too, unless it is in Options.Optional.
// Writers need create, get, update and delete for the kinds that they write, and update for the
// subresource status. A StatusWriter needs get of the objects, update of their status, and get,
// create and update of leases.coordination.k8s.io in the namespace of its Lease.
//
// # Concurrency
//
// All methods may be called from any goroutine.
package kube
