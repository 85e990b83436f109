// SPDX-License-Identifier: Apache-2.0

// Package ads serves services and their endpoints to Envoys and to gRPC clients,
// over ADS, SotW and delta. Server is an xdsupdate.XDSUpdater: what registries
// report to it goes to exactly those streams that are subscribed to what changed.
//
//	server := ads.New(services, ads.Options{})
//	server.Register(grpcServer)
//	go server.Run(stop)
//
// Registries that come and go are united by aggregate.Controller. It is what the
// server reads, and New makes the server the updater of its registries, those
// that are deleted or replaced included.
//
//	registries := aggregate.NewController()
//	server := ads.New(registries)
//	registries.AddRegistry(func(updater xdsupdate.XDSUpdater) registry.Instance {
//		return serviceentry.New(configs, updater)
//	})
//
// # Resources
//
// Clusters and load assignments of every port of every service, and for gRPC
// clients API listeners ("HOST:PORT", or "HOST" for envoy.DefaultPort) and the
// route configurations behind them; HTTP route configurations by port for
// Envoys. Package envoy builds and names them. A wildcard subscription covers all
// clusters and, if it is asked for, all load assignments; API listeners and routes
// are sent by name only. Customizers of ServiceOptions change all these before they
// are encoded.
//
// A program has two ways to make resources of its own, of any type, besides them and in
// place of them: a Provider, which is asked by name, and a Generator, which sets for a
// view what there is. What is the same for all proxies is set with one call of
// Server.SetResource.
//
// The weights of localities are in every load assignment. gRPC clients follow
// them; Envoys do not, because their clusters have no locality weighted load
// balancing, nor priorities by locality: that is a matter of traffic policy. A
// Customizer can set both.
//
// Of the kinds of Istio, ServiceEntry and WorkloadEntry have an effect here, by way
// of the services that registry/serviceentry makes of them; VirtualService,
// DestinationRule, Gateway and Sidecar have theirs with the Provider of package
// traffic. No other kind has one, but for generators of the program that read it.
//
// # Providers
//
// A Provider is asked by name for what clients are subscribed to, and says with each
// push which names may have changed in which views. What it answers for a name, views
// share that it says to be alike, as long as a client has it, or as long as it keeps
// that itself (ResourceState). So what no client is subscribed to is never made, and a
// push costs nothing for other names and views.
//
// Streams, subscriptions, snapshots and differences know of nothing but providers and
// generators. The resources of Server.SetResource come from a provider, and so do those
// of services. The order is: generators, Server.SetResource, Options.Providers, services;
// the first that has an answer for a name counts.
//
// # Views
//
// A proxy is sent nothing that it must not see, whether it asks by wildcard or by
// name: services by exportTo and its namespace, endpoints by its cluster. If
// several namespaces define a host, its own wins, then the oldest. Options.Group
// adds a part of the program's own to views. A connected proxy moves to another view
// when ProxyUpdate or ReviewProxies finds that its identity has changed.
//
// # From a change to a response
//
//  1. The Pusher merges requests and calls push, one call at a time.
//  2. push asks the providers what they have and in what that differs from before,
//     first that of services, which makes the hosts of the request anew, and calls
//     the generators for the views that it affects. All of them read one
//     PushContext. What providers have, hosts and overlays are immutable.
//  3. publish shows the new layers, one of each provider, and overlays. The reverse index has the names
//     that clients are subscribed to; their selections are marked, and nothing else
//     is looked at: a change that no client is subscribed to ends here.
//  4. What marked selections have under the changed names is built and encoded,
//     once for all views that share it, without the lock. Each selection gets a new
//     snapshot, if the content differs.
//  5. The subscriptions of those selections are answered, if their clients are
//     ready for it: with the difference between the snapshot that the client has and
//     that of the selection. Equal subscriptions have the same two snapshots and
//     share the difference and its encoding.
//  6. A response goes into the queue of its stream, in the order of types, and the
//     stream sends it without the lock.
//
// A request goes the other way: it is compared with the one before, by the bytes
// of its names; if those differ the subscription moves to another selection, or, for a
// few names, takes its own along. A new selection is attached to the reverse index, in
// parts; then its first subscription prepares its snapshot, without the lock.
//
// # Packages
//
// This one has the program's side (Server, Options, Provider, Generator), streams, subscriptions,
// and the order in which clients are sent what there is. What can do without them is below it:
//
//	internal/services   | what becomes of services and their endpoints, a provider
//	internal/resource   | resources, encoded once, and snapshots of them
//	internal/shared     | the resources of a provider that views share
//	internal/index      | who has a name
//	internal/difference | what a client is sent that has one snapshot and is to have another
//	internal/wire       | the bytes of requests and responses
//	internal/acks       | what clients have said to responses, and have not
//	internal/reference  | the names in resources, by which the phases go
//	internal/sequence   | the order in which a client is sent resources: a pure plan, with a table of rules
//	internal/trial      | the search for what a client refuses
//	internal/failure    | calls of what is the program's, and what has failed until it is reported
//	internal/pace       | turns and allowances of clients
//
// # Invariants
//
//   - Code that encodes, sends, or calls the host holds no lock.
//   - A snapshot is never modified. subscription.Has is what the client has if it
//     accepts everything that was sent, and of a refused resource what it was sent:
//     that is how a refusal is not repeated without need.
//   - A subscription that is up to date has the very snapshot of its selection:
//     the names that a client is subscribed to cost it nothing.
//   - A selection has a snapshot when its view's generators have been called, the
//     first push is done, it is attached, and it is prepared; before that no client is
//     answered.
//   - While a request changes what a subscription is, the subscription is not open: no
//     response changes what its client has.
//   - A response is sent only after a request that followed the one before, so a
//     client has at most one response to a type more than it has asked for.
//
// # Order
//
// On each stream clusters come first, then load assignments, listeners and
// routes; what is gone is removed last, in the opposite order. The load
// assignment of a changed cluster is sent again, because Envoy waits for it. A
// cluster that no longer takes its endpoints from an assignment keeps the last one
// until the client asks for it no more or the cluster goes.
//
// # Phases
//
// A client that subscribes to all clusters, as an Envoy does, loses no request while
// traffic moves: what it is sent depends on what it has accepted.
//
//  1. New and changed clusters, and their assignments. An Envoy accepts clusters when they
//     can be used. A listener or route that names one which is new to the client waits for
//     that, and only such a one does.
//  2. Listeners and routes. A route configuration that gives up a domain waits until changed
//     listeners are in use, and a listener for the routes that are to be there before. Routes
//     behind a listener whose filters may refuse more than before wait until that is in use, and
//     do not come while the client refuses it; if it refuses less they come before it.
//  3. What has gone, when the listeners and routes that do without it are accepted. A client
//     that comes back and says what it has asks for listeners and routes first.
//
// A gRPC client asks by name for the clusters that its routes name, so that it cannot have
// them before. When routes are to lead to a cluster that they did not lead to, it is
// first sent the routes that it has, with further ones behind them that match no call and name
// the cluster: then it asks. It is sent the new routes when it has accepted the clusters and
// their assignments, or has not asked for them for a second. Clusters to which routes lead no
// more, and their assignments, stay as they are until it has given them up, for a second after
// it has accepted the routes at most.
//
// What waits longer than Options.PhaseTimeout is sent all the same; Observer.Overdue and
// TypeStatus.Overdue tell. Newer changes follow as soon as they can: of what a client waits
// for no more is kept than two snapshots of each type, however often it changes
// meanwhile. WaitApplied returns after all phases.
//
// A push reads services, endpoints and configs of one moment: it does not run in
// the middle of a batch of a registry (xdsupdate.BatchUpdater). A registry that
// makes no batches may show a service with another resolution before its
// endpoints; the push that follows its calls mends it.
//
// # What gRPC clients keep
//
// grpc-js and the C core never recover from a resource that is removed and comes
// back unchanged. So a gRPC client, which subscribes by name, is never sent the
// removal of a listener, route or cluster while it is subscribed to it: when a
// service goes, or is hidden from the client, its load assignment is emptied and
// the rest stays as the client has it. Calls then fail as unavailable, and go on
// when the service is back. What is kept is never updated while it is hidden, and
// not sent to a client that does not have it, so that nothing leaks; it is forgotten
// with the subscription, and a new stream is not sent it. The listener of a server, by
// which it knows who may call, is removed: a server without it serves nobody.
//
// A gRPC client that opens a new stream, to this server or another one, names the
// listeners and clusters that it has, and takes for removed what the first answer
// does not list. For those that do not exist, or are hidden, the answer has stand-ins
// that are made of the name alone: a listener that points to the route of its host
// and port, and a cluster without endpoints. That is so only if the request has a
// version, that is, if the client has resources of the type. Without one a name that
// does not exist is not answered, and the client times out.
//
// # Versions
//
// Versions are hashes of the content, equal in every replica. A client that
// reconnects is sent nothing (delta) or the same version (SotW) if nothing
// changed.
//
// # Refusals
//
// What a client refuses costs others nothing, not even what comes in the same response.
// Envoy applies what is good of a response with clusters or listeners, and names what it
// refuses; of any other type it applies nothing that stands behind the resource that it
// refuses. So an Envoy is sent secrets, routes and, by SotW, few load assignments in
// responses of their own; and of a refused response with several
// resources those that the text names are sent again alone, and the others in halves, until
// each resource that is refused was refused alone.
//
// A secret that does not exist is no reason to wait: a SotW Envoy, which would wait
// for it for 15 seconds with all that shares a listener with what names it, is sent one
// that it cannot read once it has all others. That it refuses this counts as an answer.
//
// A refused resource is sent again when it changes, when the client asks for it, and
// after a second, two, and so on up to about a minute, because the cause may be elsewhere:
// a file that the proxy lacks, a port that is taken. Until that very resource is
// accepted or gone, Proxies shows the refusal, and WaitApplied fails.
//
// # Quarantine
//
// A resource that several objects make, such as the routes of a port, is refused as a
// whole. If its Provider can leave objects out of it (Answer.Without), the server finds
// out by trials which of them the client refuses: first those that have changed since the
// state that the client accepted last, each alone if they are few, so that the client does without
// no other meanwhile, else by halving, with about log₂ n trials for the
// first of n and as many for each further one. That client, and no other, is sent the
// resource without them. It follows all changes of the others, and gets an object back
// when that has changed; of one that changes all the time, after a pause. TypeStatus.Refusals has what is left
// out, the Observer and the log
// are told by a QuarantineError, and WaitApplied fails with it. All this costs nothing
// while nobody refuses anything, and then it is work of the client that refuses.
//
// In the same way a resource that cannot be made at all, or is not valid, is made without
// the objects that keep it from that, for all clients. TypeStatus.Failed has what is not as
// it should be; WaitApplied fails with ErrNotUpdated for what cannot be made even so.
//
// # What a proxy has
//
// Server.Resources says of each resource of a proxy what it was sent, what it has
// accepted, what it refuses with which text, and what it has not been sent yet; Proxies is
// the short form. Nothing is kept for that but what the server needs to serve the proxy: the
// states of which it was sent one, which all proxies share, and while a refusal lasts the
// state before. So it costs nothing while nobody asks. Keys are not shown. Package csds serves it
// to tools.
//
// # Concurrency
//
// Every method may be called from any goroutine. No update waits for a client: a
// response follows when the client has answered the one before, and of what
// changes meanwhile nothing is kept but the snapshot that the client has. Large
// responses are divided where the protocol allows it.
//
// gRPC interceptors see requests as messages of a type of this package, and
// responses as messages of go-control-plane whose resources are not decoded.
//
// What many clients are sent is encoded once. gRPC's codec copies it for each of
// them; a gRPC server with Codec does not, which saves nearly half of the processor
// time when many proxies come back at once.
//
// # Fairness
//
// A client can take little from others, whatever it asks for:
//
//   - What a request needs of the lock is done for a few hundred names at a time, with
//     others in between. Names are sorted, merged, looked up and compared without it.
//   - Each connection has an allowance of work, more than any proxy is known to need:
//     100,000 names at once, hundreds of requests a second. Large requests take turns, on
//     half of the processors. What goes beyond the allowance takes turns of its own, and
//     after each turn the processor is left to others for three times as long as it took. A client that waits
//     is not read from. Answers
//     to responses are free, and no change waits for any of this.
//   - Of a refusal's text 4 KiB are kept. Large responses take turns too
//     (Options.LargeResponses).
//   - Limits end streams that ask for too much. The defaults bound what one stream, and
//     all together, can make the server keep.
//
// What comes before a request has been received is gRPC's: ServerOptions and
// PacedListener bound what that takes. BenchmarkAttack measures what a client notices of
// clients that mean harm.
//
// # Panics
//
// A panic costs only where it is, whatever of the program panics: it is logged with its
// stack, counted by Observer.Panicked, and ends neither the process nor Run.
//
//	of                                | what becomes of it
//	----------------------------------|------------------------------------------
//	Options.Proxy, Options.Group,     | the stream ends with the status Internal
//	Provider.Group                    |
//	receiving and sending on a stream | the same
//	Services of the discovery         | services stay as they are, endpoints follow;
//	                                  | of a first push, clients wait for services
//	Options.Configs                   | configs stay those of the push before
//	Provide, a Generator, a           | what it has made stays
//	Customizer's Changed              |
//	Names of a provider               | wildcard subscriptions stay as they are, and
//	                                  | new ones wait
//	Covers, Lookup, a Customizer's    | clients that have the resource keep it, and
//	Scope                             | others are not sent it
//	Build, SetLazy, Customize         | the last good state stays, as if it had failed
//	functions of Changes, Affected    | they accept
//	the conversion of a host          | the host stays as it is
//	an Observer or a log handler      | nothing
//	anything else in a push           | what was not published stays
//
// Unless it is of a stream or of one resource, a later push of everything makes up for
// it, with no need of another change (xdsupdate.Pusher.Retry).
//
// # Stopping
//
// Run ends all streams when it is stopped, also those whose clients do not read.
// A graceful end comes in steps, so that clients find another server before this
// one is gone:
//
//  1. stop being ready, so that no new clients are sent here;
//  2. start grpc.Server.GracefulStop on a goroutine of its own: it closes the
//     listeners and asks clients to move (GOAWAY), and waits for the streams;
//  3. give clients time, then close Run's stop channel: the streams that are left
//     end with the status Unavailable, Run returns, and GracefulStop does when the
//     clients have read what was sent before and that status;
//  4. after a little more time call grpc.Server.Stop, for clients that read nothing:
//     gRPC cannot tell them that their stream has ended, and keeps the connection;
//  5. stop the registries and stores.
package ads
