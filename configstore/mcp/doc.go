// SPDX-License-Identifier: Apache-2.0

// Package mcp carries configs over xDS, in the form in which Istio's control
// planes exchange them (MCP over xDS). A [Source] keeps the objects of a server in a
// store:
//
//	store := memory.Make(istio.Schemas())
//	source := mcp.NewSource(conn, store)
//	go source.Run(stop)
//
// # Wire format
//
// The type URL of a kind is "group/version/Kind", literally, with "core" for the
// empty group. Each resource is an istio.mcp.v1alpha1.Resource in an Any:
//
//	metadata.name         "namespace/name"; "/name" for cluster-scoped kinds
//	metadata.version      a hash of all else: replicas with other stores agree on it
//	metadata.create_time  the CreationTimestamp; a source takes time.Unix(0, 0) without it
//	metadata.labels, metadata.annotations
//	body                  the spec, in an Any
//
// Status, UID, Domain, OwnerReferences and Generation do not travel. The format and
// the requests are those of Istio 1.31 (pkg/adsc, pilot/pkg/networking/apigen). In SotW
// a response has all objects of its kind, on both sides; a cache that sends only what
// has changed, as go-control-plane's LinearCache does for types other than Envoy's, can
// be followed by delta only.
//
// # What a response does
//
// A Source requests every kind of its store on one ADS stream, and applies each
// response as one batch, if the store is a configstore.BatchWriter. Only objects whose
// content differs are written; the versions of the server are no content, the store has
// its own. What is bad hurts nothing but itself:
//
//   - An object that cannot be decoded, or that its schema finds invalid, keeps its last
//     good state, or is not stored until it is good. The rest of the response is applied.
//     The reply is a NACK, whose text names each object and field up to a bound; its
//     version is that of the last response that was accepted as a whole on this stream.
//     An equal NACK to an equal version waits longer each time, up to 30 seconds: many
//     servers answer a NACK with the same again.
//   - A resource whose name cannot be read may be any object. In SotW nothing that is
//     missing in the same response is deleted.
//   - Of two different resources of one name none counts.
//   - What the store refuses, as it is full or has an object of another writer, is no
//     fault of the server: the reply is an ACK, and the write is tried again.
//   - A response of a type that was not requested is ignored.
//
// Report has every error for as long as it is there.
//
// # What is deleted
//
// In SotW what a response does not have, in delta what is named as removed. A server
// that has just started may not know yet what it has. So in SotW the first answer of a
// kind on a stream is held back if it is empty and the source has objects of the kind:
// it is applied when a second one is empty, too, or after SourceOptions.EmptyHold on the
// same stream; if the stream ends before, or another answer comes, it never is. Empty
// answers to a kind that was answered before on the same stream count at once. In delta
// they change nothing; there the first answer is held back if it removes all objects of the
// kind and has none. What later answers of the stream have again stays, what they remove
// once more goes at once, and the rest after EmptyHold.
//
// Without a stream everything stays as it is, and Status says since when and why. The
// next stream begins anew: in SotW without a version, so that the server answers with
// everything; in delta with the versions of the objects that are good, so that the
// server sends the difference, and names what is gone. Streams are tried again with
// exponential back-off and jitter, which a response that was applied resets, and a
// connection or a stream does not. In SotW everything is requested again from time to time:
// see SourceOptions.AskAgain.
//
// # Behind an istiod
//
// An istiod sends its configs to clients whose identity is of its root namespace: the connection needs a client certificate
// of a service account there ("spiffe://cluster.local/ns/istio-system/sa/NAME"), or a token of one as "authorization:
// Bearer TOKEN" in the metadata of the stream. Without one the streams end with Unauthenticated, which Status has. The
// objects have no domain: set SourceOptions.Domain, so that short host names are completed.
//
// # Ownership
//
// The source writes an object when what the server says of it changes, and deletes it
// when the server does not have it any more. It never touches what it has not created:
// an object of the same key that another writer has put into the store is left alone and
// reported as ErrNotOwned, until it goes away. Others may write to the source's objects;
// what they wrote stays until the server's object changes, and a status stays even then.
//
// # Cost
//
// In delta a changed object costs the work of one. In SotW each resource is compared
// with the bytes that were received before, which are kept for that, and what is equal
// is not decoded.
//
// # Concurrency
//
// All methods may be called from any goroutine.
//
// # What a Server sends
//
// A [Server] serves all kinds of a cache, to Istio's control planes and to Sources:
//
//	server := mcp.NewServer(cache)
//	server.Register(grpcServer)
//	go server.Run(stop)
//
// An istiod takes configs from it with configSources: [{address: xds://HOST:PORT}] in its
// mesh config. It completes short host names of these objects without a domain ("cart" becomes
// "cart.shop.svc" and matches no service of a cluster): write full names in objects that a stock
// istiod reads. It acknowledges what it does not take, so that its ACK proves arrival only. For what serves proxies on the same port see [NewProvider].
//
// A request without names, or for "*", is for all objects of a type. In SotW each response
// has them all, and follows only a change of its kind; in delta it has what changed. A type
// of which there is nothing, or that is not known, such as MeshConfig, is answered with an
// empty response, so that clients can tell that they have everything. A kind is served by
// the type URLs of all its versions.
//
// A client of a revision (ISTIO_REVISION in the metadata of its node, or
// ServerOptions.Revision) is not sent the objects of another one, which their label
// istio.io/rev names. A client without one is sent all.
//
// Nothing is answered before the cache has synced. What the cache commits as one comes in
// one push: one response for each kind, one after the other, because xDS has no
// responses of several types. Changes are debounced (ads.Options.Pusher).
//
// Equal objects have the same versions in every replica, if they have the same
// CreationTimestamp. So a client that comes from another replica is sent nothing by delta, and the
// same version by SotW; what changes nothing that travels, as a status does, is not sent.
//
// What a client refuses stays with it as it was; Proxies and the Observer have the
// text, and it is sent again after a while, or when it changes. An object that cannot be
// sent, because its name has a "/", costs itself only: clients keep what they have of it, and
// the Logger and the Observer are told.
//
// Each object is encoded once for all clients, if there are any. In SotW a response has all
// of a kind: clients of large stores need more than the 4 MiB that gRPC takes by default
// (grpc.MaxCallRecvMsgSize), as Istio's have. Streams, acknowledgements, limits and fairness
// are those of package ads.
package mcp
