// SPDX-License-Identifier: Apache-2.0

// Package ads serves services and their endpoints to Envoys and gRPC clients over ADS, by SotW and
// by delta. Server is an xdsupdate.XDSUpdater: registries report changes to it, and each change is
// sent to the streams that are subscribed to the changed resources.
//
//	server := ads.New(services, ads.Options{})
//	grpcServer := grpc.NewServer(ads.ServerOptions()...)
//	server.Register(grpcServer)
//	go server.Run(stop)
//	err := grpcServer.Serve(listener)
//
// An aggregate.Controller unites registries that come and go. New makes the server the updater of
// all its registries, including later ones.
//
//	registries := aggregate.NewController()
//	server := ads.New(registries)
//	registries.AddRegistry(func(updater xdsupdate.XDSUpdater) registry.Instance {
//		return serviceentry.New(configs, updater)
//	})
//
// A program that has no registry sets resources itself, of any type, for all proxies:
//
//	server := ads.New(nil)
//	err := server.SetResource("blue", &clusterv3.Cluster{Name: "blue"})
//
// # Resources
//
// The server makes clusters and load assignments for every port of every service. gRPC clients also
// get API listeners ("HOST:PORT", or "HOST" for envoy.DefaultPort) and their route configurations;
// Envoys get HTTP route configurations by port. Package envoy builds and names all of them. A
// wildcard subscription covers all clusters and, if the client asks for it, all load assignments.
// API listeners and routes are sent by name only.
//
// A program can add resources of any type, or replace built-in ones, in two ways: Server.SetResource
// sets one resource for all proxies, and a Provider is asked for the resources of a view by name.
//
// Load assignments carry the weights of localities. gRPC clients apply them. Envoys do not, because
// their clusters have neither locality weighted load balancing nor priorities by locality: both
// belong to traffic policy.
//
// Of Istio's kinds, ServiceEntry and WorkloadEntry take effect through the services that
// registry/serviceentry derives from them. VirtualService, DestinationRule, Gateway and Sidecar
// take effect through the Provider of package traffic. Other kinds have no effect, except through
// providers of the program.
//
// # Providers
//
// The server asks a Provider by name for the subscribed resources. With each push the provider
// reports the names that may have changed, and their views. Views with equal share keys share the
// resource of a name, as long as a client has it or the provider keeps it (ResourceState). A
// resource without subscribers is never built, and a push costs nothing for other names and views.
//
// The resources of services and of Server.SetResource come from providers, too. The order of
// precedence is: Server.SetResource, Options.Providers, services. The first of them that has an
// answer for a name counts. So a provider that changes a cluster of a service answers for its name,
// with a cluster that it makes by package envoy from the services of the push.
//
// # Views
//
// A proxy receives only resources that it may see, whether it subscribes by wildcard or by name:
// services according to exportTo and the proxy's namespace, endpoints according to its cluster. If
// several namespaces define a host, the definition in the proxy's own namespace wins, then the
// oldest one. Provider.Group adds a part to views that the program defines. A connected proxy moves
// to another view when ProxyUpdate or ReviewProxies finds that its identity has changed.
//
// # Consistency
//
// A push reads the services and endpoints of one xdsupdate.Root, so the definition and the endpoints
// of a service that were reported in one batch (xdsupdate.BatchUpdater) become visible together. A
// discovery that sets no services in the root is read after the root was taken. A registry that
// makes no batches may show a service with another resolution before its endpoints; the push that
// follows its calls corrects this. The root also has the configs that a provider follows
// (xdsupdate.FollowConfigs).
//
// # Order
//
// On each stream, clusters are sent first, then load assignments, listeners, routes and other
// types; removals come last, in the opposite order. The load assignment of a changed cluster is
// sent again, because Envoy waits for it. A cluster that no longer takes its endpoints from a load
// assignment keeps the last one until the client unsubscribes from it or the cluster is removed.
//
// Some resources wait for the client's ACK of others, so that no request is lost while traffic
// moves. A pure planner decides this: from the resources that a client has, its ACKs and NACKs and
// its target it computes the next response, and when to plan again. A fixed list of rules holds
// back new or changed resources; the first rule that applies to a resource counts.
//
// Rules for a client that subscribes to all clusters, as an Envoy does:
//
//  1. Routes stay as they are while the client rejects the stricter listener in front of them. A
//     listener is stricter if its filters may reject more requests than before.
//  2. Listeners and routes that lead to new clusters wait until the client can use these clusters.
//  3. Listeners wait for the routes that they use. Routes without a reason to wait therefore come
//     before listeners.
//  4. Routes that give up a domain wait until the client uses the changed listeners.
//  5. Routes behind a stricter listener wait until the client uses that listener. If a listener
//     only becomes less strict, the routes come first.
//
// The client can use new clusters when it has accepted them, because Envoy ACKs clusters when they
// are warm. If the ACK takes more than 500 ms, clusters with accepted endpoints count as usable,
// and after two seconds also clusters that Envoy resolves itself. Newer clusters do not wait for a
// late ACK: they follow every 500 ms.
//
// Rules for a gRPC client, which subscribes by name to the clusters that its routes reference:
//
//  1. Routes that lead to new clusters are announced, because the client does not subscribe to a
//     cluster before a route references it. It first gets its present routes, followed by routes
//     that match no call and reference the new clusters. The new routes follow when it has accepted
//     the clusters and their load assignments, or has not subscribed to them within a second.
//     Routes whose announcement would exceed the size of a response are sent at once.
//  2. Clusters without references, and their load assignments, stay as they are until the client
//     has unsubscribed, at most for a second after it has accepted the routes.
//
// Rules for the removal of clusters and load assignments, at a client that subscribes to all
// clusters:
//
//  1. Clusters stay for up to a second after a client has come back and has listed its resources,
//     until it has subscribed to listeners and routes.
//  2. Clusters stay until the client has accepted the listeners and routes that do not use them.
//  3. A cluster that comes back, and is deleted again, belongs to a later removal.
//  4. Clusters stay for Options.RemovalDelay after listeners have stopped using them.
//  5. Load assignments are removed after their clusters.
//
// An extension (ECDS) is not removed from a client that subscribes to it by name, as over SotW: the client uses it
// until its last listener with it has drained, and then unsubscribes.
//
// Resources that have waited for Options.PhaseTimeout are sent regardless, except behind a rejected
// stricter listener. Observer.Overdue and TypeStatus.Overdue report responses without an answer.
// Newer changes follow as soon as they can. The server keeps a bounded number of snapshots of each
// type for a waiting client, however often its resources change meanwhile. WaitApplied returns
// after the last rule was satisfied, but does not wait for routes behind a rejected listener, nor
// for Options.RemovalDelay.
//
// # gRPC clients and removals
//
// grpc-js and the C core never recover from a resource that is removed and comes back unchanged. So
// a gRPC client, which subscribes by name, never gets the removal of a listener, route or cluster
// that it is subscribed to. When a service is deleted, or hidden from the client, its load
// assignment becomes empty and the client keeps the other resources. Calls then fail as
// unavailable, and succeed again when the service is back. Kept resources are not updated while
// they are hidden, and not sent to clients that do not have them, so that hidden content does not
// leak. They are forgotten with the subscription, and a new stream does not get them. The listener
// of a gRPC server, which decides who may call, is removed: a server without it serves nobody.
//
// A gRPC client that opens a new stream, to this server or another one, lists the names of its
// listeners and clusters, and takes every name for removed that is missing in the first response.
// For names that do not exist, or are hidden, the response has placeholders that are made of the
// name alone: a listener that points to the route of its host and port, and a cluster without
// endpoints. This applies only to a request with a version, from a client that has resources of the
// type. Without a version, a name that does not exist gets no response, and the client times out.
//
// # Versions
//
// Versions are hashes of the content, equal in every replica. If nothing changed, a client that
// reconnects gets no resources (delta), or the same version (SotW).
//
// # NACKs
//
// A rejected resource does not affect other clients, nor other resources in the same response.
// Envoy applies the valid clusters or listeners of a response and names the rejected ones. Of any
// other type it applies no resource that follows the rejected one. So an Envoy gets secrets, routes
// and, over SotW, few load assignments in responses of their own. Of a rejected response with
// several resources, the server sends each resource that the error names alone, and the others
// together, or in halves if the error names none, until each rejected resource was rejected alone.
//
// A missing secret does not delay an Envoy. Over SotW, Envoy would wait 15 seconds for it, together
// with everything that shares a listener with the reference. It gets an unreadable secret instead,
// after all other secrets, and its NACK of this one counts as an ACK.
//
// A rejected resource is sent again when it changes, when the client asks for it, and after one
// second, two, and so on up to about a minute, because the cause may be elsewhere: a missing file
// at the proxy, a port in use. Until the proxy accepts that resource or it is deleted, Faults
// lists the rejection, and WaitApplied fails.
//
// # Quarantine
//
// A resource that several objects make, such as the routes of a port, is rejected as a whole. If
// its Provider can leave objects out (Answer.Without), the server finds the rejected objects by
// trials. It first tries the objects that have changed since the state that the client accepted
// last: each alone if they are few, so that the client is not sent a resource without valid objects
// meanwhile, else by halving, with about log₂ n trials for the first of n objects and as many for
// each further one. If the client rejects the resource also while the requests of all objects fail,
// the search goes on without the matches of objects, and then without their hosts (Omission).
// That client, and no other, gets the resource without the rejected objects. It follows all changes
// of the other objects. WaitApplied waits for the end of a search. If the client rejects the
// resource without the contribution of any object, its status is FaultUnnamed. A rejected object
// is tried again when it changes, and after a pause if it changes all the time.
// Faults lists the objects, a Fault reports each of them to the Observer and the log,
// and WaitApplied fails with it.
// Quarantine costs nothing while clients reject nothing; after a rejection its work counts as work
// of that client.
//
// In the same way, a resource that cannot be built, or is invalid, is built without the objects
// that cause this, for all clients. Faults lists such resources, too. WaitApplied fails
// with ErrNotUpdated if a resource cannot be built even so.
//
// # Resources of a proxy
//
// For each resource of a proxy, Server.Resources reports the state sent last, the accepted state,
// the error of a NACK, and pending changes; Proxies is the short form. Both are derived from the
// state that the server needs anyway, so they cost nothing while nobody calls them. Keys are
// redacted. Package csds serves the resources to tools.
//
// # Concurrency
//
// Every method may be called from any goroutine. No update waits for a client: its next response
// follows when the client has answered the previous one, and changes in between are not queued,
// because a response is the difference to the snapshot that the client has. Large responses are
// divided where the protocol allows it.
//
// gRPC interceptors see requests as messages of a type of this package, and responses as messages
// of go-control-plane whose resources are not decoded.
//
// A response for many clients is encoded once. gRPC's codec copies it for each client; a gRPC
// server with Codec does not, which saves nearly half of the processor time when many proxies
// reconnect at once.
//
// # Fairness
//
// No request of a client can take much from other clients:
//
//   - Requests hold the lock for a few hundred names at a time, and release it in between. Names
//     are sorted, merged, looked up and compared without the lock.
//   - Each connection has an allowance of work that exceeds the known needs of proxies: 100,000
//     names at once, hundreds of requests a second. Large requests take turns, on half of the
//     processors. Work beyond the allowance takes turns of its own, and after each turn the
//     processor is left to others for three times as long. The server does not read from a client
//     that waits. ACKs and NACKs are free, and no change waits for any of this.
//   - The server keeps 4 KiB of the error of a NACK. Large responses take turns, too
//     (Options.LargeResponses).
//   - Limits end streams that ask for too much. The defaults bound the memory that one stream, and
//     all streams together, can make the server keep.
//
// gRPC handles a connection until a request has been received: ServerOptions and PacedListener
// bound that cost. BenchmarkAttack measures the effect of malicious clients on others.
//
// # Panics
//
// A panic in code of the program affects only the part that panicked. It is logged with its stack,
// counted by Observer.Panicked, and ends neither the process nor Run.
//
//	panic in                          | consequence
//	----------------------------------|------------------------------------------
//	Options.Proxy, Provider.Group     | the stream ends with the status Internal
//	receiving and sending on a stream | the same
//	Services of the discovery         | services stay as they are, endpoints follow;
//	                                  | before the first push, clients wait
//	Provide                           | its last resources stay
//	Names of a provider               | wildcard subscriptions stay as they are, and
//	                                  | new ones wait
//	Covers, Lookup                    | clients that have the resource keep it, and
//	                                  | others do not get it
//	Build                             | the last good state stays, as after an error
//	functions of Changes              | they accept
//	the conversion of a host          | the host stays as it is
//	an Observer or a log handler      | none
//	anything else in a push           | the published state stays
//
// Unless the panic is of a stream or of one resource, a later push of everything makes up for it,
// without another change (xdsupdate.Pusher.Retry).
//
// # Stopping
//
// Run ends all streams when it is stopped, including streams of clients that do not read. A
// graceful end has several steps, so that clients find another server before this one is gone:
//
//  1. Stop being ready, so that no new clients are sent here.
//  2. Call grpc.Server.GracefulStop on a goroutine of its own: it closes the listeners, asks
//     clients to move (GOAWAY), and waits for the streams.
//  3. Give clients time, then close Run's stop channel: the remaining streams end with the status
//     Unavailable, and Run returns. GracefulStop returns when the clients have read the responses
//     and that status.
//  4. After a little more time call grpc.Server.Stop, because gRPC cannot tell a client that reads
//     nothing that its stream has ended, and keeps the connection.
//  5. Stop the registries and stores.
package ads
