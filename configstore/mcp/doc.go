// SPDX-License-Identifier: Apache-2.0

// Package mcp carries configs over xDS, in the format of Istio's control planes (MCP over xDS). A
// [Source] keeps the objects of a server in a store:
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
// Status, UID, Domain, OwnerReferences and Generation are not transferred. The format and the
// requests equal Istio 1.31's (pkg/adsc, pilot/pkg/networking/apigen). In SotW a response contains
// all objects of its kind, on both sides. A cache that sends changed resources only, as
// go-control-plane's LinearCache does for types other than Envoy's, must be followed by delta.
//
// # How responses are applied
//
// A Source requests every kind of its store on one ADS stream, and applies each response as one
// batch, if the store is a configstore.BatchWriter. Only objects with changed content are written;
// the versions of the server are not content, because the store has its own. Invalid content
// affects only itself:
//
//   - An object that cannot be decoded, or that its schema rejects, keeps its last good state; if
//     it is new, it is not stored until it is valid. The rest of the response is applied. The reply
//     is a NACK, whose text names each object and field up to a bound; its version is that of the
//     last response that was accepted as a whole on this stream. The reply to a repeated version
//     with the same errors is delayed longer each time, up to 30 seconds, because many servers
//     answer a NACK with the same response.
//   - A resource with an unreadable name may be any object. In SotW no object that is missing in
//     the same response is deleted.
//   - If a response has two different resources of one name, neither is applied.
//   - A write that the store rejects, because it is full or has an object of another writer, is not
//     the fault of the server: the reply is an ACK, and the write is retried.
//   - A response of a type that was not requested is ignored.
//
// Report has every error for as long as it persists.
//
// # Deletion
//
// In SotW an object that is missing in a response is deleted, in delta an object that is listed as
// removed. A server that has just started may not know its content yet. In SotW, if the first
// response of a kind on a stream is empty and the source has objects of the kind, the response is
// therefore held back. It is applied when a second one is empty, too, or after
// SourceOptions.EmptyHold on the same stream; if the stream ends before, or another response comes,
// it is dropped. Empty responses to a kind with an earlier response on the same stream are applied
// at once. In delta an empty response changes nothing, and the first response is held back if it
// removes all objects of the kind and has no resources. Objects that later responses of the stream
// contain stay, objects that they remove again are deleted at once, and the rest is deleted after
// EmptyHold.
//
// Without a stream everything stays as it is, and Status says since when and why. The
// next stream begins again: in SotW without a version, so that the server answers with
// everything; in delta with the versions of the objects that are good, so that the
// server sends the difference, and the names of removed objects. Streams are tried again with
// exponential back-off and jitter, which a response that was applied resets, and a
// connection or a stream does not. In SotW everything is requested again from time to time:
// see SourceOptions.AskAgain.
//
// # Behind an istiod
//
// An istiod sends its configs to clients whose identity is of its root namespace: the connection
// needs a client certificate of a service account there
// ("spiffe://cluster.local/ns/istio-system/sa/NAME"), or a token of one as "authorization: Bearer
// TOKEN" in the metadata of the stream. Without one the streams end with Unauthenticated, which
// Status has. The objects have no domain: set SourceOptions.Domain, so that short host names are
// completed.
//
// # Ownership
//
// The source writes an object when the server's state of it changes, and deletes it when the server
// removes it. It never modifies an object of another writer: an object of the same key that another
// writer has put into the store is left alone and reported as ErrNotOwned, until it goes away.
// Others may write to the source's objects. Their changes stay until the server's object changes; a
// status stays even then.
//
// # Cost
//
// In delta the cost of a change is that of one object. In SotW each resource is compared with the
// last received bytes, which are kept for this purpose, and equal resources are not decoded.
//
// # Concurrency
//
// All methods may be called from any goroutine.
//
// # Server
//
// A [Server] serves all kinds of a cache, to Istio's control planes and to Sources:
//
//	server := mcp.NewServer(cache)
//	server.Register(grpcServer)
//	go server.Run(stop)
//
// An istiod takes configs from it with configSources: [{address: xds://HOST:PORT}] in its mesh
// config. It completes short host names of these objects without a domain ("cart" becomes
// "cart.shop.svc" and matches no service of a cluster): write full names in objects that a stock
// istiod reads. It acknowledges objects that it ignores, so that its ACK proves arrival only. [NewProvider]
// serves control planes on the port of proxies.
//
// A request without names, or for "*", subscribes to all objects of a type. In SotW each response
// has all of them, and is sent only after a change of the kind; in delta a response has the
// changes. A type without objects, or an unknown one, such as MeshConfig, gets an empty response,
// so that clients know that they have everything. A kind is served by the type URLs of all its
// versions.
//
// A client of a revision (ISTIO_REVISION in the metadata of its node, or ServerOptions.Revision)
// does not get objects of other revisions, according to their label istio.io/rev. A client without
// a revision gets all objects.
//
// No response is sent before the cache has synced. The changes of one commit come in one push: one
// response for each kind, one after the other, because xDS has no responses of several types.
// Changes are debounced (ads.Options.Debounce).
//
// Equal objects have the same versions in every replica, if they have the same CreationTimestamp. A
// client that moves from another replica therefore gets no resources in delta, and the same version
// in SotW. Changes to fields that are not transferred, such as a status, are not sent.
//
// A client that rejects an object keeps its previous state. Proxies and the Observer have the text
// of the NACK, and the object is sent again after a while, or when it changes. An object that
// cannot be sent, because its name has a "/", affects only itself: clients keep their state of it,
// and the Logger and the Observer are notified.
//
// Each object is encoded once for all clients, and only if there are clients. In SotW a response
// has all objects of a kind, so clients of large stores need more than gRPC's default limit of 4
// MiB (grpc.MaxCallRecvMsgSize); Istio's clients have a higher limit. Package ads defines streams,
// acknowledgements, limits and fairness.
package mcp
