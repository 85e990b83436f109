// SPDX-License-Identifier: Apache-2.0

// Package ads serves services and their endpoints to Envoys and to gRPC clients,
// over ADS, SotW and delta. Server is an xdsupdate.XDSUpdater: what registries
// tell it goes to exactly those streams that are subscribed to what changed.
//
//	server := ads.New(services, ads.Options{})
//	server.Register(grpcServer)
//	go server.Run(stop)
//
// Registries that come and go are united by aggregate.Controller. It is what the
// server reads, and it tells the server of registries that are deleted: of their
// endpoints, and of their services that have none.
//
//	registries := aggregate.NewController(aggregate.Options{})
//	server := ads.New(registries, ads.Options{})
//	registries.OnRemoveShard(server.RemoveShard)
//	registries.SubscribeServices(xdsupdate.ServiceHandler(server))
//
// go-control-plane's server speaks the protocol. Behind it is a cache of our own:
// resources have versions of their own, are built and encoded once per change and
// only if somebody is subscribed to them, and find their subscribers by a reverse
// index.
//
// # Resources
//
// Clusters and load assignments of every port of every service, and for gRPC
// clients API listeners ("HOST:PORT", or "HOST" for envoy.DefaultPort) and the
// route configurations behind them; HTTP route configurations by port for
// Envoys. Package envoy builds and names them. A wildcard subscription covers all
// clusters; API listeners and routes are sent by name only. Generators of the
// host add to them and replace them.
//
// # Views
//
// A proxy is sent nothing that it must not see, whether it asks by wildcard or by
// name: services by exportTo and its namespace, endpoints by its cluster. If
// several namespaces define a host, its own wins, then the oldest.
//
// # Order
//
// On each stream clusters come first, then load assignments, listeners and
// routes; what is gone is removed last, in the opposite order. The load
// assignment of a changed cluster is sent again, because Envoy waits for it. A
// cluster that no longer takes its endpoints from an assignment keeps the last one
// until the client asks for it no more.
//
// A push that runs between the moment when a registry shows a service with another
// resolution and its call of the server, may read the new service with the old
// endpoints. The push that follows the call mends it.
//
// # Versions
//
// Versions are hashes of the content, equal in every replica. A client that
// reconnects is sent nothing (delta) or the same version (SotW) if nothing
// changed. A response that is refused is not sent again until its content
// changes; Proxies shows the refusal.
//
// # Concurrency
//
// Every method may be called from any goroutine. No update waits for a client: a
// response follows when the client has answered the one before, and of what
// changes meanwhile only the names are kept. Large responses are divided where
// the protocol allows it.
package ads
