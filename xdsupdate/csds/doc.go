// SPDX-License-Identifier: Apache-2.0

// Package csds shows what the proxies of an ads.Server have: by the client status
// discovery service (CSDS, envoy.service.status.v3), which tools of the ecosystem
// speak, and in the form of the page /config_dump of an Envoy.
//
//	csds.New(server, csds.Options{Authorize: operatorsOnly}).Register(grpcServer)
//	json, err := csds.ConfigDump(resources) // one of server.Resources
//
// Both show what the server has sent, and what proxies have said to it, not what an Envoy
// makes of it. Keys and other secrets are never shown: see ads.StateOfResource. Nothing
// is done, and nothing kept, while nobody asks.
//
// # Who may ask
//
// What is shown is no secret, but it is everything else about a mesh: who asks sees what
// all proxies have. Proxies reach the server's port too, so every call is refused with
// PermissionDenied unless Options.Authorize accepts it.
//
// # CSDS
//
// FetchClientStatus answers once, StreamClientStatus once for each request. There is one
// ClientConfig for each stream of a proxy, so that one that reconnects may be there
// twice; client_scope is "stream N". It has generic_xds_configs only:
//
//	field          | has
//	---------------|--------------------------------------------------------------
//	config_status  | SYNCED, STALE, ERROR, NOT_SENT: see ads.ResourceStatus
//	client_status  | ACKED, NACKED, REQUESTED; DOES_NOT_EXIST for a name that the
//	               | proxy asks for and of which there is nothing
//	version_info   | the version of the resource: a hash of its content
//	xds_config     | the state that was sent last, also if it is refused
//	last_updated   | when the server made that state
//	error_state    | what the proxy said, with the state that it refused
//
// NodeMatchers select proxies, any of them: by the ID (exact, prefix, suffix, contains,
// safe_regex, ignore_case) and by metadata (paths of keys to a text, a bool, a number, null, or
// something). With none all proxies are meant: at a large mesh that is a large answer,
// which a client takes only if it allows such messages. Matchers of another kind are
// refused with InvalidArgument. With exclude_resource_contents neither xds_config nor
// error_state have resources.
package csds
