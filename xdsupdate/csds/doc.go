// SPDX-License-Identifier: Apache-2.0

// Package csds shows the xDS state of the proxies connected to an ads.Server: by the client status
// discovery service (CSDS, envoy.service.status.v3), which common xDS tools speak, and in the
// format of an Envoy's /config_dump page.
//
//	csds.New(server, csds.Options{Authorize: operatorsOnly}).Register(grpcServer)
//	json, err := csds.ConfigDump(resources) // one of server.Resources
//
// Both show the resources that the server sent and the ACKs and NACKs of the proxies, not the state
// inside an Envoy. Keys and other secrets are never shown: see ads.StateOfResource. The package
// does no work and keeps no state between requests.
//
// # Authorization
//
// The responses contain no secrets, but everything else about a mesh: a caller sees the resources
// of all proxies. Proxies can reach the server's port, too. Therefore every call is rejected with
// PermissionDenied unless Options.Authorize accepts it.
//
// # CSDS
//
// FetchClientStatus responds once, StreamClientStatus once for each request. A response has one
// ClientConfig for each stream of a proxy, so a proxy that reconnects may appear twice. The field
// client_scope is "stream N". A ClientConfig has generic_xds_configs only:
//
//	field          | content
//	---------------|--------------------------------------------------------------
//	config_status  | SYNCED, STALE, ERROR, NOT_SENT: see ads.ResourceStatus
//	client_status  | ACKED, NACKED, REQUESTED; DOES_NOT_EXIST for a name that the
//	               | proxy subscribes to and that does not exist
//	version_info   | version of the resource: a hash of its content
//	xds_config     | state that was sent last, even if it was rejected
//	last_updated   | when the server built that state
//	error_state    | error of the NACK, with the rejected state
//
// NodeMatchers select the proxies that match any of them: by ID (exact, prefix, suffix, contains,
// safe_regex, ignore_case) and by metadata (a path of keys to a text, a bool, a number, null, or
// any value). Without NodeMatchers all proxies are selected. In a large mesh that is a large
// response, which a client accepts only if it allows messages of that size. Other kinds of matchers
// are rejected with InvalidArgument. With exclude_resource_contents, neither xds_config nor
// error_state have resources.
package csds
